# RocketMQ's remoting protocol, as much as one request needs. Its own admin tool starts a JVM for every question.
# shellcheck shell=bash

# remoting PORT CODE EXT_FIELDS_JSON [BODY] sends one request and prints header and body of the reply.
# A frame is: length of the rest, length of the header (its top byte 0 means JSON), header, body.
remoting() {
  local header body=${4:-} length
  header="{\"code\":$2,\"flag\":0,\"language\":\"OTHER\",\"opaque\":1,\"version\":0,\"extFields\":$3}"
  (
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    { four_bytes $((4 + ${#header} + ${#body})); four_bytes ${#header}; printf '%s' "$header$body"; } >&3
    length=$(timeout 5 head -c 4 <&3 | od -An -tu1 | awk '{ print (($1 * 256 + $2) * 256 + $3) * 256 + $4 }')
    timeout 5 head -c "${length:-0}" <&3 | tail -c +5 | tr -d '\0'
  ) 2>/dev/null || true
}

four_bytes() {
  local hex
  printf -v hex '%08x' "$1"
  # shellcheck disable=SC2059 # the escapes are the message
  printf "\\x${hex:0:2}\\x${hex:2:2}\\x${hex:4:2}\\x${hex:6:2}"
}

# succeeded reads a reply and says whether its code is 0.
succeeded() { grep -aq '"code":0[,}]'; }
