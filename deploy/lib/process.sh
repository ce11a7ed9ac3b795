# Processes by pid. A pid file holds the pid and the kernel's start time of that process, so that a pid which the
# system gave to somebody else is never taken for ours.
# shellcheck shell=bash
# shellcheck disable=SC2154 # dir comes from settings in deploy/stack

# spawn PART COMMAND... starts a process that outlives this script, its output in log/PART.log.
spawn() {
  local part=$1 log="$dir/log/$1.log"
  shift
  if [[ -e $log ]]; then mv "$log" "$log.before"; fi
  setsid "$@" </dev/null >"$log" 2>&1 9>&- &
  local pid=$!
  echo "$pid $(started_at "$pid")" >"$dir/pid/$part"
}

# started_at prints the start time of a living process in ticks since boot, nothing for a dead one or a zombie.
started_at() {
  local stat fields
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 0
  read -ra fields <<<"${stat##*) }"
  if [[ ${fields[0]} != Z && ${fields[0]} != X ]]; then echo "${fields[19]}"; fi
}

pid_of() {
  local pid rest
  [[ -s $dir/pid/$1 ]] || return 0
  read -r pid rest <"$dir/pid/$1" || true
  echo "$pid"
}

runs() {
  local pid began
  [[ -s $dir/pid/$1 ]] || return 1
  read -r pid began <"$dir/pid/$1" || true
  [[ -n ${began:-} && $(started_at "$pid") == "$began" ]]
}

gone() { ! runs "$1"; }

# stop asks, waits, and after 60 s insists.
stop() {
  runs "$1" || return 0
  kill -TERM "$(pid_of "$1")" 2>/dev/null || true
  if ! wait_until 60 gone "$1"; then
    say "$1 did not stop in 60 s: killed"
    kill_hard "$1"
  fi
  rm -f "$dir/pid/$1"
}

kill_hard() {
  runs "$1" || return 0
  kill -KILL "$(pid_of "$1")" 2>/dev/null || true
  wait_until 10 gone "$1" || die "$1 (pid $(pid_of "$1")) does not die"
  rm -f "$dir/pid/$1"
}

# wait_until SECONDS COMMAND... asks every 100 ms. It gives up at once where the command answers 2.
wait_until() {
  local end=$((SECONDS + $1)) answer
  shift
  while ((SECONDS <= end)); do
    answer=0
    "$@" || answer=$?
    ((answer == 0)) && return 0
    ((answer == 2)) && return 1
    sleep 0.1
  done
  return 1
}

# since prints the seconds from an EPOCHREALTIME until now, with two decimals.
since() {
  local now=${EPOCHREALTIME/[.,]/} then=${1/[.,]/}
  printf '%d.%02d' $(((now - then) / 1000000)) $(((now - then) / 10000 % 100))
}

show_log() {
  [[ -e $dir/log/$1.log ]] || return 0
  echo "--- $1: the end of $dir/log/$1.log"
  tail -n 25 "$dir/log/$1.log"
}
