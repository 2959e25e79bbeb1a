#!/bin/sh
# A Debian package of an installed tree: sh packaging/deb.sh TREE OUT VERSION
# TREE is what `make install DESTDIR=TREE PREFIX=/usr` made; the package is OUT/bertc_VERSION_ARCHITECTURE.deb. What the program is
# linked with becomes its dependencies (dpkg-shlibdeps); what it loads when it is needed is recommended or suggested. With
# SOURCE_DATE_EPOCH set, the same tree gives the same bytes; with DEB_HOST_ARCH, the package is for that architecture.
set -eu
tree=$1 out=$2 version=$3
for tool in dpkg-deb dpkg-shlibdeps; do
	command -v $tool >/dev/null || { echo "make: $tool is missing: install the package dpkg-dev" >&2; exit 1; }
done
architecture=${DEB_HOST_ARCH:-$(dpkg --print-architecture)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
cp -a "$tree" "$root"
find "$root/usr/share/man" -type f -exec gzip -9n {} +
documents=$root/usr/share/doc/bertc
gzip -9n "$documents/CHANGELOG.md"
mv "$documents/CHANGELOG.md.gz" "$documents/changelog.gz"
{
	printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: bertc\n\n'
	printf 'Files: *\nCopyright: the authors of bertc\nLicense: Apache-2.0\n On Debian systems the text of this licence is in\n'
	printf ' /usr/share/common-licenses/Apache-2.0.\n'
} >"$documents/copyright"
rm -f "$documents/LICENSE"
install -Dm 644 "$(dirname "$0")/bertc.service" "$root/lib/systemd/system/bertc.service"
install -m 644 "$(dirname "$0")/gpu.conf" "$documents"

# Modules are linked with nothing: the MPI they belong to is loaded before them.
mkdir -p "$work/debian" "$root/DEBIAN"
printf 'Source: bertc\n\nPackage: bertc\nArchitecture: %s\n' "$architecture" >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O "$root/usr/bin/bertc" 2>"$work/said" | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { cat "$work/said" >&2; exit 1; }
cat >"$root/DEBIAN/control" <<-CONTROL
	Package: bertc
	Version: $version
	Architecture: $architecture
	Maintainer: The authors of bertc
	Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
	Depends: $depends
	Recommends: libcurl4t64 | libcurl4 | libcurl3-gnutls, ca-certificates
	Suggests: libhdf5-310 | libhdf5-103-1, openmpi-bin | mpich
	Section: science
	Priority: optional
	Description: pre-train, fine-tune, and use BERT models
	 A native program that takes you from raw text to a BERT model you can ship: it learns a
	 vocabulary, prepares the text, pre-trains, fine-tunes, evaluates, predicts, embeds, and serves,
	 on CPUs and on NVIDIA GPUs, on one machine or many. Model folders are those of Hugging Face's
	 transformers.
CONTROL
(cd "$root" && find usr lib -type f | LC_ALL=C sort | xargs md5sum) >"$root/DEBIAN/md5sums"
chmod -R u=rwX,go=rX "$root"
find "$root" -exec touch -hd "@${SOURCE_DATE_EPOCH:-$(date +%s)}" {} +
mkdir -p "$out"
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/bertc_${version}_$architecture.deb" >/dev/null
echo "$out/bertc_${version}_$architecture.deb"
