#!/bin/sh
# An archive that runs where it is unpacked, on any Linux with glibc GLIBC or later:
# sh packaging/tarball.sh TREE OUT VERSION GLIBC LICENCES PROCESSOR
# TREE is what `make install DESTDIR=TREE PREFIX=` made of a program that holds every library but glibc's; LICENCES is the folder
# with those of the libraries. The archive is OUT/bertc-VERSION-linux-PROCESSOR.tar.xz.
set -eu
tree=$1 out=$2 version=$3 needed=$4 licences=$5 processor=$6
name=bertc-$version-linux-$processor
case $processor in x86_64) system="x86-64 with AVX2" ;; aarch64) system=arm64 ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name
cp -a "$tree" "$root"
mkdir -p "$root/share/doc/bertc"
cp -a "$licences" "$root/share/doc/bertc/licences"

glibc='ld-linux[^/]*|libc|libm|libpthread|libdl|librt'
left=$(readelf -d "$root/bin/bertc" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Ev "^($glibc)\.so") || true
[ -z "$left" ] || { echo "tarball: these come from the system: $left" >&2; exit 1; }
newest=$(find "$root/bin" "$root/lib" -type f -exec readelf -VW {} + 2>/dev/null | grep -o 'GLIBC_2\.[0-9.]*' | cut -d_ -f2 | { cat; echo "$needed"; } |
	sort -uV | tail -n 1)
[ "$newest" = "$needed" ] || { echo "tarball: something needs glibc $newest" >&2; exit 1; }

# The linker's own memcpy and exp are slow, and not those of other builds: they come with any function that it has to add.
readelf --dyn-syms -W "$root/bin/bertc" | grep -q ' UND memcpy@GLIBC' || { echo "tarball: memcpy is not glibc's" >&2; exit 1; }

cat >"$root/README" <<-README
	bertc $version for Linux on $system, glibc $needed or later (ldd --version says yours).

	    bin/bertc version
	    bin/bertc help

	The folder may lie anywhere; bin/bertc may be linked to from a folder of your PATH. lib/bertc holds its modules for
	MPI, and share/doc/bertc/licences the licences of the libraries that are part of it. Libraries that only some tasks need are
	the system's, and bertc says what to install when one is missing; bin/bertc version lists them.
	Manual pages, shell completion, and documentation are in share.
README
find "$root" -exec touch -hd "@${SOURCE_DATE_EPOCH:-$(date +%s)}" {} +
mkdir -p "$out"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w,a+rX --format=gnu -c "$name" | xz -6 -T1 >"$out/$name.tar.xz"
echo "$out/$name.tar.xz (glibc $needed or later)"
