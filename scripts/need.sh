#!/usr/bin/env bash
# Makes sure that programs are here, and installs the Debian packages of those that are not: need.sh PROGRAM …
#
# Says in one line what it installs. Where it may not (neither root nor sudo without a password), or where there is no
# apt-get, one sentence names what to install.
set -euo pipefail
# A plain `su` keeps the user's PATH, which lacks the administrator's programs.
PATH=$PATH:/usr/sbin:/sbin

# Succeeds if a program is here.
has() {
	case $1 in
		# A compiler without the C library's headers and start files links nothing.
		cc) command -v cc > /dev/null && echo 'int main(void) { return 0; }' | cc -x c -o /dev/null - 2> /dev/null ;;
		python3) python3 -c 'import ensurepip, venv' 2> /dev/null ;;
		# Debian keeps the programs of each version in a folder that no PATH has.
		postgres)
			if [[ -n ${PG_CONFIG-} ]]; then [[ -x $("$PG_CONFIG" --bindir)/postgres ]]
			else command -v postgres > /dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' > /dev/null; fi ;;
		# Headers of another version than the server's are of no use.
		postgres-headers)
			if [[ -n ${PG_CONFIG-} ]]; then [[ -f $("$PG_CONFIG" --includedir-server 2> /dev/null)/postgres.h ]]
			else compgen -G '/usr/include/postgresql/*/server/postgres.h' > /dev/null; fi ;;
		# bindgen wants the library, and the headers that only come with the compiler.
		libclang) command -v clang > /dev/null && compgen -G '/usr/lib/llvm-*/lib/libclang*' > /dev/null ;;
		time) [[ -x /usr/bin/time ]] ;;
		*) command -v "$1" > /dev/null ;;
	esac
}

packages_of() {
	case $1 in
		cc) echo gcc libc6-dev ;;
		python3) echo python3 python3-venv ;;
		# Only its programs are used: tests and benchmarks start private servers.
		postgres) if [[ -n ${PG_CONFIG-} ]]; then echo "postgresql-$major"; else echo postgresql; fi ;;
		postgres-headers) echo postgresql-server-dev-all ;;
		libclang) echo clang libclang-dev ;;
		script) echo bsdutils ;;
		*) echo "$1" ;;
	esac
}

# The PostgreSQL that is asked for. The name of a package is made of it, and apt-get removes a package whose name ends with a minus.
major=''
if [[ -n ${PG_CONFIG-} ]]; then
	major=$("$PG_CONFIG" --version 2> /dev/null | sed -n 's/^PostgreSQL \([0-9][0-9]*\).*/\1/p') || true
	[[ $major =~ ^[0-9]+$ ]] || { echo "error: PG_CONFIG=$PG_CONFIG is not PostgreSQL's pg_config, or does not work" >&2; exit 1; }
fi
if ! command -v cargo > /dev/null; then
	echo "error: please install Rust; rust-toolchain.toml says which version" >&2
	exit 1
fi
packages=()
for program in "$@"; do
	if ! has "$program"; then read -ra more <<< "$(packages_of "$program")"; packages+=("${more[@]}"); fi
done
(( ${#packages[@]} )) || exit 0

if ! command -v apt-get > /dev/null; then
	echo "error: please install what Debian calls ${packages[*]}" >&2
	exit 1
elif [[ $(id -u) == 0 ]]; then
	as_root=()
elif command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
	as_root=(sudo)
else
	echo "error: please install ${packages[*]} (neither root nor sudo without a password here)" >&2
	exit 1
fi
echo "installing ${packages[*]} (apt-get${as_root[*]:+, with sudo})"
# A package that is broken off in the middle of its questions would stay half installed: no terminal, no questions. Another
# apt-get may be at work, as after the start of a new machine: it is waited for, ten minutes at most. (apt's own setting for that
# concerns one of its three locks.)
apt() {
	local said attempt
	for attempt in {1..120}; do
		if said=$("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -qq "$@" < /dev/null 2>&1 > /dev/null); then return; fi
		[[ $said == *"Could not get lock"* || $said == *"Unable to lock"* ]] || break
		sleep 5
	done
	printf '%s\n' "$said" >&2
	return 1
}
# An outdated list may still do, and the next command says what is missing.
apt update || true
if ! apt install -y --no-install-recommends "${packages[@]}"; then
	echo "error: apt-get could not install ${packages[*]}; please install them" >&2
	exit 1
fi
# A server of another origin than Debian's, for instance: its headers are in no package of this name.
for program in "$@"; do
	has "$program" || { echo "error: $program is still missing after ${packages[*]} came; please install it" >&2; exit 1; }
done
