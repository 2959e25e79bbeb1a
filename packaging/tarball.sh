#!/bin/sh
# An archive that runs where it is unpacked, on any x86-64 Linux with glibc: sh packaging/tarball.sh TREE OUT VERSION
# TREE is what `make install DESTDIR=TREE PREFIX=` made. Every library that the program is linked with goes along, but for those of
# glibc; the program looks for them in ../lib/bertc before anywhere else. The archive is OUT/bertc-VERSION-linux-x86_64.tar.xz; its
# README says from which glibc on it runs, read from the versions of the symbols it needs.
set -eu
tree=$1 out=$2 version=$3
name=bertc-$version-linux-$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name
cp -a "$tree" "$root"
mkdir -p "$root/lib/bertc" "$root/share/doc/bertc/licences"

glibc='linux-vdso|ld-linux[^/]*|libc|libm|libpthread|libdl|librt|libresolv|libutil|libanl|libnsl'
ldd "$root/bin/bertc" | awk '$3 ~ /^\// {print $3}' | LC_ALL=C sort -u | grep -Ev "/($glibc)\.so" | while read -r library; do
	cp -L "$library" "$root/lib/bertc/"
	chmod 644 "$root/lib/bertc/${library##*/}"
	# The licence that came with it, where packages are Debian's.
	package=$(dpkg-query -S "$(readlink -f "$library")" 2>/dev/null | head -n 1 | cut -d: -f1) || package=
	if [ -n "$package" ] && [ -f "/usr/share/doc/$package/copyright" ]; then
		cp -L "/usr/share/doc/$package/copyright" "$root/share/doc/bertc/licences/$package"
	fi
done
# All that is bundled is found without the system's: nothing outside glibc may be left.
left=$(LD_LIBRARY_PATH= ldd "$root/bin/bertc" | awk '$3 ~ /^\// {print $3}' | grep -Ev "^$root/|/($glibc)\.so") || true
[ -z "$left" ] || { echo "tarball: these come from the system: $left" >&2; exit 1; }

# The newest version of glibc's symbols that anything here needs.
needed=$(find "$root/bin" "$root/lib" -type f -exec objdump -T {} + 2>/dev/null | grep -o 'GLIBC_2\.[0-9.]*' | sort -uV | tail -n 1 | cut -d_ -f2)
cat >"$root/README" <<-README
	bertc $version for Linux on x86-64 with AVX2, glibc $needed or later (ldd --version says yours).

	    bin/bertc version
	    bin/bertc help

	The folder may lie anywhere; bin/bertc may be linked to from a folder of your PATH. lib/bertc holds the libraries it is
	linked with, whose licences are in share/doc/bertc/licences, and its modules for MPI. Libraries that only some tasks need are
	the system's, and bertc says what to install when one is missing; bin/bertc version lists them.
	Manual pages, shell completion, and documentation are in share.
README
find "$root" -exec touch -hd "@${SOURCE_DATE_EPOCH:-$(date +%s)}" {} +
mkdir -p "$out"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w,a+rX --format=gnu -c "$name" | xz -6 -T1 >"$out/$name.tar.xz"
echo "$out/$name.tar.xz (glibc $needed or later)"
