# What a bare machine lacks: the servers by its package manager, RocketMQ by Maven.
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables come from settings in deploy/stack

PATH=$PATH:/usr/sbin # Debian's place for mariadbd, not in every user's path

install_parts() {
  local missing=()
  has redis-server || missing+=(redis-server)
  { has mariadbd && has mariadb-install-db && has mariadb; } || missing+=(mariadb-server)
  has java || missing+=(jdk)
  if [[ ! -d $rocketmq_home/lib ]]; then
    has mvn || missing+=(maven)
  fi
  if ((${#missing[@]} > 0)); then install_packages "${missing[@]}"; fi
  rocketmq_fetch
}

has() { command -v "$1" >/dev/null; }

# jdk_package prints the package behind our word jdk: RocketMQ wants Java 17, newer ones run it too.
jdk_package() {
  if apt-cache show openjdk-17-jdk-headless >/dev/null 2>&1; then echo openjdk-17-jdk-headless; else echo default-jdk-headless; fi
}

install_packages() {
  local log="${TMPDIR:-/tmp}/floodgate-apt.log"
  has apt-get || die "missing: $*. Install them by your package manager (or use deploy/compose.yaml)"
  ((EUID == 0)) || die "missing: run 'apt-get install ${*/#jdk/$(jdk_package)}' as root, then again"
  say "installing $*"
  apt-get update -q >"$log" 2>&1 || die "apt-get update failed: see $log"
  set -- "${@/#jdk/$(jdk_package)}"
  (
    trap policy_restore EXIT
    policy_forbid
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >>"$log" 2>&1
  ) || die "apt-get install $* failed: see $log"
}

# While packages are installed no service may start: this stack brings its own processes.
policy_forbid() {
  if [[ -e /usr/sbin/policy-rc.d ]]; then mv /usr/sbin/policy-rc.d /usr/sbin/policy-rc.d.before-floodgate; fi
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
}

policy_restore() {
  rm -f /usr/sbin/policy-rc.d
  if [[ -e /usr/sbin/policy-rc.d.before-floodgate ]]; then mv /usr/sbin/policy-rc.d.before-floodgate /usr/sbin/policy-rc.d; fi
}

# rocketmq_version is the pom's.
rocketmq_version() { sed -n 's:.*<rocketmq.version>\(.*\)</rocketmq.version>.*:\1:p' "$here/rocketmq/pom.xml"; }

# rocketmq_fetch collects the jars beside their final place and renames the folder: it is whole or absent.
rocketmq_fetch() {
  if [[ -d $rocketmq_home/lib ]]; then return 0; fi
  say "fetching RocketMQ by Maven into $rocketmq_home"
  local new="$rocketmq_home/lib.$$" log="$rocketmq_home/maven.log"
  mkdir -p "$rocketmq_home"
  mvn -q -B -f "$here/rocketmq/pom.xml" "-DoutputDirectory=$new" \
    org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies >"$log" 2>&1 ||
    { rm -rf "$new"; tail -n 10 "$log" >&2; die "Maven could not fetch RocketMQ: see $log"; }
  mv -T "$new" "$rocketmq_home/lib" 2>/dev/null || rm -rf "$new" # another stack was first
}
