#!/bin/sh
# A release has the same bytes wherever and whenever it is built: two clones of the last commit, in folders with different
# names, with different umasks, languages and time zones, and without a compiler cache, are made into packages that are
# compared byte for byte.
#
#   CUDA=0 sh tests/long/reproducible.sh      without the back end for GPUs, whose kernels take most of the time
#   WORK=folder                               keeps both clones
#   FIRST=folder                              a clone that is already built, used as the first one
set -u
cd "$(dirname "$0")/../.."
command -v git >/dev/null && git rev-parse -q --verify HEAD >/dev/null 2>&1 || { echo "no git repository here: left out"; exit 77; }
command -v dpkg-shlibdeps >/dev/null || { echo "no dpkg-shlibdeps here: left out"; exit 77; }
source=$(pwd) work=${WORK:-$(mktemp -d)}
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work/b"
first=${FIRST:-$work/one} second=$work/b/another
# The second is a clone of the same commit, whatever is committed while the first is built.
commit=$(git -C "${FIRST:-.}" rev-parse HEAD)
export CCACHE_DISABLE=1
unset BUILD BERTC MAKEFLAGS MFLAGS MAKELEVEL

build() {
	git clone -q "$source" "$1" && git -C "$1" checkout -q "$commit" || exit 1
	(cd "$1" && make ${CUDA:+CUDA=$CUDA} release) >"$1.log" 2>&1 || { tail -n 20 "$1.log"; echo "FAIL: make release in $1"; exit 1; }
}
[ -n "${FIRST:-}" ] || (umask 022 && TZ=UTC LC_ALL=C build "$first") || exit 1
(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 build "$second") || exit 1

failed=0 count=0
for file in "$first"/build/release/*.deb "$first"/build/release/*.tar.xz "$first"/build/release/SHA256SUMS "$first"/build/release/*.whl \
	"$first"/build/packed/bertc "$first"/build/packed/portable/bertc; do
	name=${file#"$first"/}
	count=$((count + 1))
	cmp "$file" "$second/$name" || { echo "FAIL: $name differs"; failed=1; }
done
# oneDNN's version would name the commit of the folder around its sources.
! grep -q "$commit" "$first/build/packed/portable/bertc" || { echo "FAIL: the archive's program holds the commit that it was built from"; failed=1; }
[ "$count" -ge 7 ] || { echo "FAIL: only $count files to compare"; failed=1; }
[ $failed -ne 0 ] || echo "reproducible: $count files, the same bytes in two folders"
exit $failed
