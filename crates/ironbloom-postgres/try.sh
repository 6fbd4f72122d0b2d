#!/usr/bin/env bash
# Starts a private server with the extension in a folder of its own, to be tried with psql: try.sh LIBRARY PG_CONFIG
set -euo pipefail
unset CDPATH
# A plain `su` keeps the user's PATH, which lacks runuser.
PATH=$PATH:/usr/sbin:/sbin
library=$1
config=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The name of a socket has 107 bytes at most, and the server's user must be able to pass to it.
parent=$(realpath -- "${TMPDIR:-/tmp}")
# Folders of sockets are a list with commas.
if (( $(printf %s "$parent" | wc -c) > 60 )) || [[ $parent == *,* ]] || { [[ $(id -u) == 0 ]] && ! runuser -u postgres -- test -x "$parent"; }; then parent=/tmp; fi
folder=$(mktemp -d "$parent/ironbloom.XXXXXX")
chmod 755 "$folder"
server=''
end() {
	trap '' INT TERM HUP
	# Again and again: it ignores the first signals until it has its own handlers, as everything that a script starts beside itself.
	while [[ -n $server ]] && kill -INT "$server" 2> /dev/null; do sleep 0.2; done
	cd /
	rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT TERM HUP
bin=$(bash "$here/server.sh" "$folder/server" "$library" "$config")
as_user=()
if [[ $(id -u) == 0 ]]; then
	id postgres > /dev/null 2>&1 || { echo "error: please make a user called postgres (useradd --system postgres): the server does not run as root" >&2; exit 1; }
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
# In the background, because a shell heeds a signal only between two commands, or while it waits. Not by runuser, which is another
# process than the server.
if (( ${#as_user[@]} )); then as_user=(setpriv --reuid postgres --regid postgres --init-groups --); fi
"${as_user[@]}" "$bin/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= &
server=$!
wait "$server" || true
server=''
