#!/usr/bin/env bash
# Starts a private server with the extension in a folder of its own, to be tried with psql: try.sh LIBRARY PG_CONFIG
set -euo pipefail
library=$1
config=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT
bin=$(bash "$here/server.sh" "$folder/server" "$library" "$config")
as_user=()
if [[ $(id -u) == 0 ]]; then
	# The server refuses to run as root.
	as_user=(runuser -u postgres --)
	chown -R postgres "$folder"
fi
cd "$folder"
# Errors that pass through Rust would have the names of C functions as their detail.
export RUST_LIB_BACKTRACE=0
"${as_user[@]}" "$bin/initdb" -A trust -U postgres --no-sync --encoding=UTF8 --locale=C.UTF-8 -D "$folder/data" > /dev/null
echo "try: psql -h $folder -U postgres"
echo "     create extension ironbloom;        end: Ctrl-C"
"${as_user[@]}" "$bin/postgres" -D "$folder/data" -k "$folder" -c listen_addresses=
