#!/usr/bin/env bash
# Runs the README's two commands on a Debian that has nothing else: bare.sh [--cache FOLDER] [--in FOLDER] [--user | --odd] [COMMAND …]
#
# The machine is a folder: Debian's smallest system with make, git and ca-certificates, the present commit, this machine's Rust
# toolchain, and an environment of HOME and PATH. Without commands it runs `make demo` and then `make test`.
#
#   --cache FOLDER   keeps Debian packages, crates and Python packages there for the next run
#   --in FOLDER      makes the machine in this folder (10 to 20 GB) instead of target/
#   --user           works as a user with sudo instead of as root
#   --odd            as such a user, in Turkish, on Samoa, in a folder with blanks and umlauts, with a home that is not writable
#                    but for caches
#
# Mounts and processes live in namespaces that end with this script, whatever happens to it.
set -euo pipefail
# Everyone inside must be able to read what is made here.
umask 022
unset CDPATH "${!GIT_@}"
# A plain `su` keeps the user's PATH, which lacks the administrator's programs.
PATH=$PATH:/usr/sbin:/sbin

fail() { echo "error: $*" >&2; exit 1; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

cache='' parent=${CARGO_TARGET_DIR:-$here/target} user=root place=home packages=make,git,ca-certificates commands=() more=() root='' door=''
original=("$@")
while (( $# )); do
	case $1 in
		--cache | --in) (( $# > 1 )) || fail "$1 takes a folder" ;;&
		--inside) root=$2 door=$3; shift 2 ;;
		--cache) cache=$2; shift ;;
		--in) parent=$2; shift ;;
		--user) user=builder ;;
		--odd) user=builder place=odd more=(LANG=tr_TR.UTF-8 LC_ALL=tr_TR.UTF-8 TZ=Pacific/Apia) ;;
		-*) fail "unknown option $1" ;;
		*) commands+=("$1") ;;
	esac
	shift
done

if [[ -z $root ]]; then
	[[ $(id -u) == 0 ]] || fail "test-bare makes a machine with debootstrap and mounts, which takes root"
	command -v apt-get > /dev/null || fail "test-bare makes a Debian from Debian's packages, which takes apt-get"
	bash "$here/scripts/need.sh" debootstrap git
	unshare --mount --pid --fork true 2> /dev/null || fail "test-bare makes mounts in a namespace, which takes the capability SYS_ADMIN"
	# The toolchain goes along with its folder, which must not be that of the system's programs.
	toolchain=$(rustc --print sysroot)
	[[ ! -e $toolchain/bin/apt-get && ! -e $toolchain/bin/python3 && ! -e $toolchain/bin/make && ! -e $toolchain/bin/cc ]] ||
		fail "Rust is in $toolchain among other programs, which would not be missed inside; test-bare takes one of rustup's toolchains"
	mkdir -p "$parent"
	parent=$(cd "$parent" && pwd)
	# Machines of runs that were killed: those that run hold a lock. One that has just been made is about to take it.
	for old in "$parent"/bare.??????; do
		# Nothing that merely has such a name.
		[[ -d $old && -f $old.log && -L $old.door && -z $(find "$old" -maxdepth 0 -mmin -1) ]] || continue
		if flock --nonblock "$old.log" true 2> /dev/null; then
			rmdir "$(readlink "$old.door")" 2> /dev/null || true
			rm -rf --one-file-system "$old" "$old.log" "$old.gitconfig" "$old.door"
		fi
	done
	root=$(mktemp -d "$parent/bare.XXXXXX")
	exec 7> "$root.log"
	flock 7
	# A way to it without blanks, which debootstrap does not bear.
	door=$(mktemp -d /tmp/bare.XXXXXX)
	ln -s "$door" "$root.door"
	inside=''
	end() {
		if [[ -n $inside ]]; then kill -KILL "$inside" 2> /dev/null || true; wait "$inside" 2> /dev/null || true; fi
		# The mounts are gone with their namespace; should one be left, it is not entered.
		rm -rf --one-file-system "$root" "$root.log" "$root.gitconfig" "$root.door"
		rmdir "$door"
	}
	trap end EXIT
	trap 'exit 130' INT TERM HUP
	# The inside shares only the network. Its first process takes all others along when it ends, and ends with this script.
	# In the background, because a shell heeds a signal only between two commands, or while it waits.
	setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc -- bash "${BASH_SOURCE[0]}" --inside "$root" "$door" "${original[@]}" &
	inside=$!
	wait "$inside"
	exit
fi

(( ${#commands[@]} )) || commands=("make demo" "make test")
[[ $user == root ]] || packages+=,sudo
[[ $place != odd ]] || packages+=,locales,tzdata

mount --make-rprivate /
# It is the root folder of every user inside.
chmod 755 "$root"
log=$root.log
config=$root.gitconfig
mount --bind "$root" "$door"
root=$door

# A folder of the cache in place of one inside.
keep() { # name, place
	mkdir -p "$root$2"
	[[ -n $cache ]] || return 0
	mkdir -p "$cache/$1"
	mount --bind "$cache/$1" "$root$2"
}

suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
find_mirror() {
	# Others than Debian call their suites so, too.
	apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' | awk -v suite="$suite" '$1 == "Debian" && $2 == suite { print $3; exit }'
}
mirror=$(find_mirror)
[[ -n $mirror ]] || { apt-get update -qq; mirror=$(find_mirror); }
[[ -n $mirror ]] || fail "apt-get on this machine knows no mirror of Debian $suite"
debs=()
if [[ -n $cache ]]; then
	mkdir -p "$cache"
	cache=$(cd "$cache" && pwd)
	mkdir -p "$cache/debs"
	# apt-get and cargo inside would not know of those of another machine.
	exec 8> "$cache/lock"
	flock --nonblock 8 || { echo "waiting for another machine that has this cache"; flock 8; }
	debs=("--cache-dir=$cache/debs")
fi
echo "== a bare $suite"
debootstrap --variant=minbase --include="$packages" "${debs[@]}" \
	"$suite" "$root" "$mirror" >> "$log" 2>&1 || { tail -n 20 "$log" >&2; fail "debootstrap has failed"; }

# Where packages come from, how the network is reached, and whom this machine trusts are its own affairs. Of its settings
# only those of the network: others remove packages after they are installed, or call programs that are not inside.
rm -f "$root/etc/apt/sources.list"
for name in sources.list sources.list.d trusted.gpg trusted.gpg.d keyrings auth.conf auth.conf.d; do
	[[ ! -e /etc/apt/$name ]] || cp -r "/etc/apt/$name" "$root/etc/apt/"
done
[[ ! -d /usr/share/keyrings ]] || cp -r /usr/share/keyrings/. "$root/usr/share/keyrings/"
apt-config dump | grep '^Acquire::' | grep -vi 'Proxy-Auto-Detect' > "$root/etc/apt/apt.conf.d/99network" || true
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2> /dev/null || true
chroot "$root" update-ca-certificates > /dev/null 2>&1

mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
	: > "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
# As containers have it.
mount -t tmpfs -o mode=1777,nosuid,nodev,noexec,size=64m tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for number in 0 1 2; do
	names=(stdin stdout stderr)
	ln -s "/proc/self/fd/$number" "$root/dev/${names[number]}"
done

# How the network is reached.
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
	[[ -z ${!name-} ]] || more+=("$name=${!name}")
done

home=/root
if [[ $user != root ]]; then
	home=/home/$user
	chroot "$root" useradd --create-home --shell /bin/sh "$user"
	echo "$user ALL=(ALL) NOPASSWD: ALL" > "$root/etc/sudoers.d/$user"
fi
mkdir -p "$root/opt/rust"
mount --bind "$(rustc --print sysroot)" "$root/opt/rust"
mount -o remount,bind,ro "$root/opt/rust"
keep debs /var/cache/apt/archives
keep crates "$home/.cargo/registry"
keep python "$home/.cache/pip"

# The clone here may belong to another user. Not by an option, which a process that git starts would not see.
printf '[safe]\n\tdirectory = *\n' > "$config"
export GIT_CONFIG_GLOBAL=$config
changes=$(git -C "$here" status --porcelain)
[[ -z $changes ]] || echo "what is not committed here is not tested"
checkout=$home/ironbloom
[[ $place != odd ]] || checkout="/srv/Grüße an alle/ironbloom"
mkdir -p "$root$(dirname "$checkout")"
git clone --quiet --no-hardlinks "$here" "$root$checkout"
[[ $user == root ]] || chroot "$root" chown -R "$user": "$home" "$checkout"
if [[ $place == odd ]]; then
	chroot "$root" localedef -i tr_TR -f UTF-8 tr_TR.UTF-8
	chroot "$root" chown root: "$home"
	chroot "$root" chmod 555 "$home"
fi

for command in "${commands[@]}"; do
	printf '\n== %s, as %s in %s\n' "$command" "$user" "$checkout"
	as_user=()
	[[ $user == root ]] || as_user=(runuser -u "$user" --)
	chroot "$root" "${as_user[@]}" env --ignore-environment HOME="$home" PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		"${more[@]}" sh -c "cd '$checkout' && $command" < /dev/null
done
echo "== passed on a bare $suite as $user: $(printf '%s; ' "${commands[@]}")"
