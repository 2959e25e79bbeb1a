#!/bin/sh
# Installs those of the named Debian packages that are missing: sh dev/deps.sh PACKAGE...
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	echo "deps: no apt-get here; these Debian packages (or what your system calls them) must be there:" >&2
	echo "deps: $*" >&2
	exit 0 # the build names the first header that is missing
fi

missing= fresh=
for package; do
	dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "deps: packages are missing, and only root can install them. Run as root:" >&2
		echo "deps:     apt-get install$missing" >&2
		exit 1
	fi
	root="sudo env"
	echo "deps: asking sudo, since only root may install packages" >&2
fi
case $missing in *:arm64*)
	dpkg --print-foreign-architectures | grep -qx arm64 || ${root:-env} dpkg --add-architecture arm64 || exit 1
	fresh=1
	;;
esac
echo "deps: bertc is built and tested with these packages, which are missing here:$missing" >&2
install="${root:-env} DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends$missing"
update="${root:-env} apt-get update -q"
{
	# A fresh image has no package lists, and old lists name packages that are no longer available.
	[ -z "$fresh" ] && [ -n "$(find /var/lib/apt/lists -name '*Packages*' 2>/dev/null | head -n 1)" ] || $update
	$install || { $update && $install; }
} >&2 || {
	echo "deps: apt-get could not install:$missing" >&2
	exit 1
}
