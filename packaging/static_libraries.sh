#!/bin/sh
# Builds the static libraries that the archive and the wheel need and Debian does not have: oneDNN (only what bertc calls; not
# for arm64), and libmicrohttpd without TLS, which would bring GnuTLS. usage: static_libraries.sh OUT MACHINE ARCHIVE...
# Also collects, in OUT/licences, the licences of these and of the packages that the other static libraries, ARCHIVE..., are of.
# Their sources are those of the packages that are installed here, in the same versions, so that the archive computes the same
# bits as the Debian package. ONEDNN_SOURCE=folder and LIBMICROHTTPD_SOURCE=folder give unpacked sources instead, and
# MIRROR=address another mirror of Debian.
set -eu
for tool in cmake dpkg-source; do
	command -v $tool >/dev/null || { echo "static_libraries: $tool is missing: install the packages cmake and dpkg-dev" >&2; exit 1; }
done
sources=$(realpath "$(dirname "$0")/onednn_sources.cmake")
mkdir -p "$1/work" "$1/licences"
out=$(realpath "$1") work=$(realpath "$1/work") machine=$2
shift 2

# Unpacks the source of a package into $work/PACKAGE: fetch PACKAGE BINARY
fetch() {
	version=$(dpkg-query -W -f '${source:Version}\n' "$2" | head -n 1)
	cat >"$work/debian.sources" <<-SOURCES
		Types: deb-src
		URIs: ${MIRROR:-http://deb.debian.org/debian}
		Suites: $(. /etc/os-release && echo "$VERSION_CODENAME")
		Components: main
		Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	SOURCES
	apt="apt-get -o Dir::Etc::sourcelist=$work/debian.sources -o Dir::Etc::sourceparts=- -o Dir::State::Lists=$work/lists"
	mkdir -p "$work/lists/partial"
	{ $apt update && (cd "$work" && $apt source --download-only "$1=$version") &&
		dpkg-source --extract "$work/$1"_*.dsc "$work/$1"; } >"$work/$1.log" 2>&1 || {
		tail -n 3 "$work/$1.log" >&2
		echo "static_libraries: no source of $1 $version; unpack it and give its folder as $(echo "$1" | tr "[:lower:]" "[:upper:]")_SOURCE" >&2
		exit 1
	}
}

# Runs a step quietly: step LOG COMMAND...
step() {
	log=$work/$1.log && shift
	"$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
}

built=libmicrohttpd-dev
case $machine in aarch64*) ;; *) built="$built libdnnl-dev" ;; esac
if [ "$built" != libmicrohttpd-dev ] && [ ! -e "$out/libdnnl.a" ]; then
	onednn=${ONEDNN_SOURCE:-$work/onednn}
	[ -d "$onednn" ] || fetch onednn libdnnl-dev
	# The map keeps the names of folders out of its messages, and without Git it takes no commit of a folder around its own for
	# its version's, so that every build has the same bytes.
	step onednn-configure cmake -S "$onednn" -B "$work/onednn-build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
		-DCMAKE_CXX_FLAGS="-ffile-prefix-map=$(realpath "$onednn")=onednn" -DDNNL_LIBRARY_TYPE=STATIC -DDNNL_CPU_RUNTIME=OMP \
		-DDNNL_ENABLE_PRIMITIVE='MATMUL;REORDER' -DDNNL_ENABLE_WORKLOAD=INFERENCE -DDNNL_ENABLE_JIT_PROFILING=OFF \
		-DDNNL_ARCH_OPT_FLAGS= -DDNNL_BUILD_TESTS=OFF -DDNNL_BUILD_EXAMPLES=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Git=ON \
		-DCMAKE_PROJECT_INCLUDE="$sources"
	step onednn-build cmake --build "$work/onednn-build" --parallel "$(nproc)"
	cp "$work/onednn-build/src/libdnnl.a" "$out"
fi
if [ ! -e "$out/libmicrohttpd.a" ]; then
	microhttpd=$(realpath "${LIBMICROHTTPD_SOURCE:-$work/libmicrohttpd}")
	[ -d "$microhttpd" ] || fetch libmicrohttpd libmicrohttpd-dev
	mkdir -p "$work/microhttpd-build" && cd "$work/microhttpd-build"
	host=
	[ "$(gcc -dumpmachine)" = "$machine" ] || host=--host=$machine
	step microhttpd-configure "$microhttpd/configure" $host --disable-https --disable-shared --enable-static --with-pic --disable-doc \
		--disable-examples --disable-curl
	step microhttpd-build make -C src/microhttpd
	cp src/microhttpd/.libs/libmicrohttpd.a "$out"
fi
for archive; do dpkg-query -S "$(realpath "$archive")"; done | cut -d: -f1 | sort -u | while read -r package; do
	cp "/usr/share/doc/$package/copyright" "$out/licences/$package"
done
for package in $built; do cp "/usr/share/doc/$package/copyright" "$out/licences/$package"; done
