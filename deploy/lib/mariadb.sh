# MariaDB. Its first statements create the database and both users again at every start: they change nothing then.
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables come from settings in deploy/stack

mariadb_trx_commit() { if [[ $flush == always ]]; then echo 1; else echo 2; fi; }

mariadb_launch() {
  local data="$dir/mariadb/data" user=()
  mkdir -p "$dir/mariadb/tmp"
  if ((EUID == 0)); then user=(--user=root); fi
  # The marker, not the folder, says that the first files are complete.
  if [[ ! -e $dir/mariadb/complete ]]; then
    rm -rf "$data"
    mariadb-install-db --no-defaults --datadir="$data" "${user[@]}" --auth-root-authentication-method=normal \
      --skip-test-db --innodb-log-file-size=128M >"$dir/log/mariadb.log" 2>&1 ||
      { show_log mariadb >&2; die "MariaDB could not write its first files into $data"; }
    touch "$dir/mariadb/complete"
  fi
  (umask 077 && mariadb_first_statements >"$dir/mariadb/init.sql")
  # The socket's name is relative to the data folder: a socket's whole path may not pass 107 characters.
  spawn mariadb mariadbd --no-defaults "${user[@]}" --datadir="$data" --tmpdir="$dir/mariadb/tmp" \
    --bind-address=127.0.0.1 --port="$mariadb_port" --socket=mariadb.sock --pid-file="$dir/mariadb/mariadb.pid" \
    --init-file="$dir/mariadb/init.sql" --skip-name-resolve --max-connections=500 \
    --character-set-server=utf8mb4 --default-time-zone=+00:00 --transaction-isolation=READ-COMMITTED \
    --innodb-buffer-pool-size=256M --innodb-log-file-size=128M \
    --innodb-flush-log-at-trx-commit="$(mariadb_trx_commit)"
}

# Tests make databases of their own, named floodgate_...; an underscore stands for any character in a grant.
mariadb_first_statements() {
  local password
  password=$(<"$dir/secret")
  cat <<TEXT
CREATE DATABASE IF NOT EXISTS floodgate CHARACTER SET utf8mb4;
CREATE OR REPLACE USER root@localhost IDENTIFIED BY '$password';
GRANT ALL ON *.* TO root@localhost WITH GRANT OPTION;
CREATE OR REPLACE USER root@127.0.0.1 IDENTIFIED BY '$password';
GRANT ALL ON *.* TO root@127.0.0.1 WITH GRANT OPTION;
CREATE OR REPLACE USER floodgate@127.0.0.1 IDENTIFIED BY '$password';
GRANT ALL ON \`floodgate%\`.* TO floodgate@127.0.0.1;
TEXT
}

mariadb_answers() { [[ $(mariadb_call 'SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = "floodgate"') == 1 ]]; }

mariadb_flush() { mariadb_call "SET GLOBAL innodb_flush_log_at_trx_commit = $(mariadb_trx_commit)" >/dev/null; }

mariadb_call() {
  MYSQL_PWD=$(<"$dir/secret") timeout 5 mariadb --no-defaults -h 127.0.0.1 -P "$mariadb_port" -u root -N -B -e "$1" 2>/dev/null || true
}
