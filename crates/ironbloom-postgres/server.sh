#!/usr/bin/env bash
# A private copy of an installed PostgreSQL with the extension: server.sh FOLDER LIBRARY [PG_CONFIG]
#
# The server looks for its files relative to where its programs are. So copies of the programs in a folder of ours find the
# extension there, and nothing is installed anywhere else. Prints the folder of the programs.
set -euo pipefail
unset CDPATH
folder=$1
library=$2
config=${3:-${PGRX_PG_CONFIG_PATH:-pg_config}}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

bin=$("$config" --bindir)
share=$("$config" --sharedir)
libraries=$("$config" --pkglibdir)

# What the three have in common is replaced by our folder.
prefix=$bin
while [[ $share != "$prefix"/* || $libraries != "$prefix"/* ]]; do prefix=$(dirname "$prefix"); done
# Wheels have libraries in a folder beside the package, and programs that look for it there: all keep their places.
if compgen -G "$prefix/../../*.libs" > /dev/null; then
	prefix=$(cd "$prefix/../.." && pwd)
	mkdir -p "$folder"
	ln -sfn "$prefix"/*.libs "$folder"
fi
ours() { echo "$folder/${1#"$prefix"/}"; }

mkdir -p "$(ours "$bin")" "$(ours "$share")/extension" "$(ours "$libraries")"
for name in postgres initdb pg_ctl psql pg_basebackup pg_isready pgbench pg_controldata; do
	if [[ -x $bin/$name ]]; then cp -L "$bin/$name" "$(ours "$bin")"; fi
done
for entry in "$share"/*; do
	[[ $(basename "$entry") == extension ]] || ln -sfn "$entry" "$(ours "$share")"
done
ln -sf "$share"/extension/* "$(ours "$share")/extension"
ln -sf "$libraries"/* "$(ours "$libraries")"
# Programs that are not the system's look for libraries beside them; system folders are found anyway.
lib=$("$config" --libdir)
if [[ $lib == "$prefix"/* && $prefix != /usr ]]; then
	mkdir -p "$(ours "$lib")"
	for entry in "$lib"/*; do
		[[ -e $(ours "$entry") ]] || ln -s "$entry" "$(ours "$entry")"
	done
fi
rm -f "$(ours "$libraries")/ironbloom.so" "$(ours "$share")"/extension/ironbloom{.control,--*.sql}
cp "$library" "$(ours "$libraries")/ironbloom.so"
cp "$here/ironbloom.control" "$here"/sql/ironbloom--*.sql "$(ours "$share")/extension"
ours "$bin"
