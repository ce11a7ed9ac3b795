# Redis. Nothing is ever evicted, and with flush=always each write is on disk before it is answered.
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables come from settings in deploy/stack

redis_fsync() { if [[ $flush == always ]]; then echo always; else echo everysec; fi; }

redis_launch() {
  mkdir -p "$dir/redis"
  cat >"$dir/redis/redis.conf" <<TEXT
bind 127.0.0.1
port $redis_port
dir "$dir/redis"
daemonize no
save ""
appendonly yes
appendfsync $(redis_fsync)
maxmemory 2gb
maxmemory-policy noeviction
# A list is searched from its front: 512 buyers in one cost a sale of 1,000 units half as much again.
hash-max-listpack-entries 32
TEXT
  spawn redis redis-server "$dir/redis/redis.conf"
}

redis_answers() { [[ $(redis_call PING) == PONG ]]; }

redis_flush() { [[ $(redis_call CONFIG SET appendfsync "$(redis_fsync)") == OK ]] || die "Redis refused appendfsync"; }

redis_call() { timeout 5 redis-cli -h 127.0.0.1 -p "$redis_port" "$@" 2>/dev/null || true; }
