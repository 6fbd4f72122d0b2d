#!/usr/bin/env bash
# Servers that this Debian does not carry, for the tests: Valkey 8.0 from its backports, and Redis 8 from the release after it
# (with `all` Valkey 8.1, too), with the libraries they want. Packages are unpacked below a folder; nothing is installed, and
# the lists of apt stay as they are. Prints the paths of the servers that it could get.
#
#   servers.sh FOLDER [all]
set -euo pipefail

folder=$1
others=(redis-8)
[[ ${2-} != all ]] || others+=(valkey-8.1)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# The mirror that this machine uses for the release itself. Others than Debian have suites of this name, too.
mirror=$(apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' | awk '$1 == "Debian" && $2 == "bookworm" { print $3; exit }')
[[ -n $mirror ]] || { echo "servers.sh: only for Debian 12" >&2; exit 1; }

# apt with lists of its own, for one suite.
own_apt() { # suite, arguments of apt-get …
	local suite=$1 state=$folder/apt-$1
	shift
	mkdir -p "$state"/{lists/partial,cache/archives/partial}
	[[ -s $state/status ]] || : > "$state/status"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$state/sources.list"
	apt-get -qq -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
		-o APT::Sandbox::User=root "$@"
}

unpack() { # suite, name of the folder, packages …
	local suite=$1 root=$folder/$2
	shift 2
	mkdir -p "$root/packages"
	# All of it or nothing: a server without its libraries would look as if it were there.
	if own_apt "$suite" update && (cd "$root/packages" && own_apt "$suite" download "$@"); then
		for package in "$root"/packages/*.deb; do dpkg-deb --extract "$package" "$root" || break; done
		rm -r "$root/packages"
	else
		echo "servers.sh: $suite is not reachable: no ${root##*/}" >&2
		rm -r "$root"
		return 1
	fi
}

# A server of another release brings its own C library, and is started by that library's loader.
wrap() { # name of the folder, program
	local root=$folder/$1 program=$folder/$1/usr/bin/$2
	local libraries=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu
	cat > "$root/$2" <<-END
		#!/bin/sh
		exec "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$libraries" "$program" "\$@"
	END
	chmod +x "$root/$2"
}

libraries=(libc6 libgcc-s1 libssl3t64 libstdc++6 libsystemd0 libjemalloc2 libatomic1 liblzf1 libcap2 libzstd1 zlib1g)

valkey8=$folder/valkey-8.0/usr/bin/valkey-server
if [[ ! -x $valkey8 ]]; then
	unpack bookworm-backports valkey-8.0 valkey-server valkey-tools || true
fi
for server in "${others[@]}"; do
	program=${server%-*}-server
	if [[ ! -x $folder/$server/$program ]]; then
		unpack trixie "$server" "$program" "${server%-*}-tools" "${libraries[@]}" && wrap "$server" "$program" || true
	fi
done

for server in "$valkey8" "${others[@]/#/"$folder/"}"; do
	[[ $server == "$valkey8" ]] || server+=/$(basename "${server%-*}")-server
	if [[ -x $server ]] && "$server" --version > /dev/null; then echo "$server"; fi
done
