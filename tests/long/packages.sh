#!/bin/sh
# The Debian package, the archive, and the wheel, in systems that have nothing else. Each is made (whatever is not built yet
# is built first) and unpacked or installed in a bare root. The package and the archive train and predict there; a missing
# library is reported with the name of its package, and works once that is installed. The package is installed by apt in a
# Debian made by debootstrap (DEBIAN=bookworm from MIRROR), the archive runs in a root that has glibc and a shell and
# nothing more and in an older Debian (OLDER=bullseye), and the wheel is installed by pip in a newer Debian (WHEEL_DEBIAN=trixie), with NumPy from the package
# index, where it answers and runs the package's tests. Needs root, chroot and unshare, curl, debootstrap, and Debian's mirror;
# says what it left out.
#
#   BUILD=build sh tests/long/packages.sh        WORK=folder keeps the roots; CUDA=0 leaves the kernels for GPUs out
#
# ARCH=arm64: those of a cross build, in roots whose programs qemu runs; there is none with glibc alone then.
set -u
cd "$(dirname "$0")/../.."
ARCH=${ARCH:-} BUILD=${BUILD:-build${ARCH:+-$ARCH}} DEBIAN=${DEBIAN:-bookworm} MIRROR=${MIRROR:-http://deb.debian.org/debian} OLDER=${OLDER:-bullseye}
WHEEL_DEBIAN=${WHEEL_DEBIAN:-trixie}
[ "$(id -u)" -eq 0 ] || { echo "not root: left out"; exit 77; }
unshare -m true 2>/dev/null || { echo "no namespaces here: left out"; exit 77; }
work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
failed=0
say() { echo "$*"; }
bad() { echo "FAIL: $*"; failed=1; }
seconds() { date +%s.%N; }
since() { awk "BEGIN {printf \"%.1f\", $(date +%s.%N) - $1}"; }

for goals in "deb tarball" wheel-file; do
	# shellcheck disable=SC2086
	make --no-print-directory BUILD="$BUILD" ${ARCH:+ARCH=$ARCH} ${CUDA:+CUDA=$CUDA} $goals >>"$work/made" 2>&1 || { tail -n 20 "$work/made"; echo "FAIL: make $goals"; exit 1; }
done
version=$(sed -n '/^## /{s/^## \([^ ]*\) .*/\1/p;q;}' CHANGELOG.md)
deb=$(ls "$BUILD/release/bertc_${version}_"*.deb) archive=$(ls "$BUILD/release/bertc-$version-linux-"*.tar.xz)
say "package $(wc -c <"$deb") bytes, archive $(wc -c <"$archive") bytes; $(grep 'glibc' "$work/made")"

mkdir -p "$work/text"
awk 'BEGIN {srand(1); split("the a harbour ship sails north wind carries old captain reads map stars shine over dark sea", w, " ");
	for (d = 0; d < 400; d++) {for (s = 0; s < 5; s++) {line = ""; for (i = 0; i < 9; i++) line = line w[1 + int(rand() * 16)] " "; print line "."} print ""}}' >"$work/text/world.txt"

# The same in each root, and the same bits: the version, a model from text, its words, its vectors over HTTP, what is missing.
# $1 names the root, $2 runs a command in it.
try() {
	name=$1 inside=$2
	rm -rf "$root/tmp/run" # of an earlier try in a root that WORK keeps
	begin=$(seconds)
	$inside bertc version >"$work/$name.version" 2>&1 || { bad "$name: bertc version"; cat "$work/$name.version"; return; }
	say "$name: bertc version after $(since "$begin") s"
	grep -q "^bertc $version$" "$work/$name.version" || bad "$name: another version"
	begin=$(seconds)
	$inside bertc pretrain --quiet --corpus /text --model tiny --vocab_size 200 --max_seq_length 32 --train_batch_size 16 \
		--num_train_steps 30 --threads 1 --device cpu --out /tmp/run >"$work/$name.run" 2>&1 || { bad "$name: pretrain"; tail -n 5 "$work/$name.run"; }
	say "$name: a model from text after $(since "$begin") s"
	$inside bertc fill --model /tmp/run/final --threads 1 'the old [MASK] reads' >"$work/$name.fill" 2>&1 || { bad "$name: fill"; cat "$work/$name.fill"; }
	begin=$(seconds)
	$inside bertc serve --model /tmp/run/final --threads 1 --device cpu --no_progress --listen 127.0.0.1:0 >"$work/$name.serve" 2>&1 &
	service=$!
	for _ in $(seq 600); do
		address=$(grep -o 'http://127[^ ]*' "$work/$name.serve") && break
		sleep 0.1
	done
	curl -sS -d '{"inputs": ["the captain reads", "a dark sea"]}' "$address/embed" >"$work/$name.vectors" || { bad "$name: serve"; cat "$work/$name.serve"; }
	say "$name: an answer of the service after $(since "$begin") s"
	pkill -P $service
	wait $service || bad "$name: serve ends with $?"
	sha256sum "$root/tmp/run/final/model.safetensors" "$work/$name.fill" "$work/$name.vectors" | cut -c1-64 >"$work/$name.bits"
	[ -n "${bits:-}" ] || bits=$work/$name.bits
	cmp "$bits" "$work/$name.bits" || bad "$name: weights, words, or vectors of other bits than in another root"
	if grep -q '^devices: cpu, cuda' "$work/$name.version"; then
		$inside bertc pretrain --corpus /text --model tiny --out /tmp/gpu --device cuda >"$work/$name.gpu" 2>&1
		[ $? -eq 5 ] && grep -q 'NVIDIA driver' "$work/$name.gpu" || { bad "$name: --device cuda says"; tail -n 3 "$work/$name.gpu"; }
		grep -q 'cuBLASLt: not usable here: install NVIDIA' "$work/$name.version" || bad "$name: version on cuBLASLt"
	else
		say "$name: built without the back end for GPUs"
	fi
	$inside bertc instances --corpus /text --vocab_file /tmp/run/final/vocab.txt --max_seq_length 32 --out /tmp/x.hdf5 >"$work/$name.hdf5" 2>&1
	[ $? -eq 5 ] && grep -q 'libhdf5-103-1' "$work/$name.hdf5" || { bad "$name: HDF5 is said to be"; tail -n 3 "$work/$name.hdf5"; }
	$inside env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 bertc pretrain --corpus /text --model tiny --out /tmp/mpi >"$work/$name.mpi" 2>&1
	[ $? -eq 5 ] && grep -q 'libopenmpi3' "$work/$name.mpi" || { bad "$name: MPI is said to be"; tail -n 3 "$work/$name.mpi"; }
}

# ---- The archive, in a root with glibc and a shell ----
in_bare() { unshare -m sh -c 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$@"' "$root" "$root" /bin/env -i "PATH=/bin:/opt/$(basename "$archive" .tar.xz)/bin" "$@"; }
if [ -z "$ARCH" ]; then
	root=$work/bare
	rm -rf "$root" && mkdir -p "$root/tmp" "$root/proc" "$root/dev" "$root/bin" "$root/text" "$root/opt"
	for file in /bin/sh /usr/bin/env; do
		cp -L "$file" "$root/bin/"
		ldd "$file" | grep -o '/[^ ]*' | while read -r library; do mkdir -p "$root$(dirname "$library")" && cp -Ln "$library" "$root$library"; done
	done
	for library in libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 libresolv.so.2; do
		path=$(ldconfig -p | awk -v l=$library '$1 == l && /x86-64/ {print $NF; exit}')
		mkdir -p "$root$(dirname "$path")" && cp -Ln "$path" "$root$path"
	done
	tar -C "$root/opt" -xJf "$archive"
	cp "$work/text/world.txt" "$root/text/"
	try archive in_bare
fi

# ---- The archive, in an older Debian, and the package, in a bare one ----
if ! command -v debootstrap >/dev/null || ! command -v apt-get >/dev/null; then
	say "no debootstrap here: the package is not installed"
	exit $failed
fi
root=$work/older
if [ -x "$root/bin/env" ] || debootstrap ${ARCH:+--arch=$ARCH} --variant=minbase "$OLDER" "$root" "$MIRROR" >"$work/debootstrap" 2>&1; then
	mkdir -p "$root/text" && cp "$work/text/world.txt" "$root/text/"
	tar -C "$root/opt" -xJf "$archive"
	try "$OLDER" in_bare
else
	say "debootstrap made no $OLDER: the archive is not tried there"
fi
root=$work/debian
if [ ! -x "$root/usr/bin/apt-get" ] && ! debootstrap ${ARCH:+--arch=$ARCH} --variant=minbase "$DEBIAN" "$root" "$MIRROR" >"$work/debootstrap" 2>&1; then
	tail -n 3 "$work/debootstrap"
	say "debootstrap made no $DEBIAN (see above): the package is not installed"
	exit $failed
fi
mkdir -p "$root/text" && cp "$work/text/world.txt" "$root/text/" && cp "$deb" "$root/tmp/bertc.deb"
for file in /etc/resolv.conf /etc/hosts; do cp -L $file "$root$file"; done
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null
in_debian() { unshare -m sh -c 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$@"' "$root" "$root" /usr/bin/env -i \
	PATH=/usr/bin:/bin:/usr/sbin:/sbin DEBIAN_FRONTEND=noninteractive OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$@"; }
begin=$(seconds)
in_debian apt-get install -q -y --no-install-recommends /tmp/bertc.deb >"$work/apt" 2>&1 || { tail -n 5 "$work/apt"; bad "apt-get install"; exit 1; }
say "debian: installed after $(since "$begin") s; $(in_debian dpkg-query -W -f '${Installed-Size} KiB' bertc); depends on $(in_debian dpkg-query -W -f '${Depends}' bertc)"
try debian in_debian
for page in bertc bertc-pretrain; do [ -f "$root/usr/share/man/man1/$page.1.gz" ] || bad "no man page of $page"; done
for file in bash-completion/completions/bertc bertc/recipes/bert_base.conf doc/bertc/README.md doc/bertc/changelog.gz doc/bertc/copyright; do
	[ -f "$root/usr/share/$file" ] || bad "no /usr/share/$file"
done
# The packages that were named are installed, and then everything works.
in_debian apt-get install -q -y --no-install-recommends libhdf5-103-1 openmpi-bin >"$work/apt" 2>&1 || bad "apt-get install what was named"
in_debian bertc instances --quiet --corpus /text --vocab_file /tmp/run/final/vocab.txt --max_seq_length 32 --out /tmp/x.hdf5 || bad "HDF5 once its library is there"
[ ! -d "$root/usr/lib/bertc" ] || in_debian mpirun --oversubscribe -n 2 env BERTC_TRANSPORT=mpi bertc pretrain --quiet --corpus /text --model tiny --vocab_size 200 --max_seq_length 32 \
	--train_batch_size 16 --num_train_steps 5 --threads 1 --device cpu --out /tmp/ranks >"$work/ranks" 2>&1 || { tail -n 5 "$work/ranks"; bad "mpirun"; }
if in_debian apt-get install -q -y --no-install-recommends mpich >"$work/apt" 2>&1 && [ -f "$root/usr/lib/bertc/bertc-mpi-mpich.so" ]; then
	in_debian mpiexec.hydra -n 2 env BERTC_TRANSPORT=mpi bertc pretrain --quiet --corpus /text --model tiny --vocab_size 200 --max_seq_length 32 \
		--train_batch_size 16 --num_train_steps 5 --threads 1 --device cpu --out /tmp/hydra || bad "mpiexec of MPICH"
fi
in_debian apt-get purge -q -y bertc >"$work/apt" 2>&1 || bad "apt-get purge"
[ ! -e "$root/usr/bin/bertc" ] && [ ! -e "$root/usr/lib/bertc" ] || bad "purge leaves something"

# ---- The wheel, in a newer Debian ----
root=$work/newer
if [ ! -x "$root/usr/bin/python3" ] && ! debootstrap ${ARCH:+--arch=$ARCH} --variant=minbase --include=python3-venv,ca-certificates "$WHEEL_DEBIAN" "$root" "$MIRROR" >"$work/debootstrap" 2>&1; then
	tail -n 3 "$work/debootstrap"
	say "debootstrap made no $WHEEL_DEBIAN (see above): the wheel is not installed"
	exit $failed
fi
for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do cp -L $file "$root$file"; done
rm -rf "$root/opt/wheel" "$root/opt/tests" "$root/opt/venv" "$root/opt/model"
mkdir -p "$root/opt/wheel" && cp "$BUILD"/wheel/dist/*.whl "$root/opt/wheel/" && cp -r python/tests "$root/opt/tests"
in_debian python3 -m venv /opt/venv >"$work/venv" 2>&1 || { tail -n 3 "$work/venv"; bad "python3 -m venv"; exit 1; }
pip="/opt/venv/bin/pip -q --disable-pip-version-check --cert /etc/ssl/certs/ca-certificates.crt install"
if ! in_debian $pip numpy >"$work/pip" 2>&1; then
	tail -n 1 "$work/pip"
	say "no NumPy from the package index: the wheel is not installed"
	exit $failed
fi
begin=$(seconds)
in_debian sh -c "$pip --no-index /opt/wheel/*.whl" >"$work/pip" 2>&1 || { tail -n 5 "$work/pip"; bad "pip install"; exit 1; }
say "wheel: $(wc -c <"$(ls "$BUILD"/wheel/dist/*.whl)") bytes, installed in $WHEEL_DEBIAN after $(since "$begin") s"
in_debian sh -c 'cd /opt/tests && /opt/venv/bin/python -c "
import small_model
small_model.write_model(\"/opt/model\", \"BertForSequenceClassification\", [\"bad\", \"good\"])"' || bad "the small model"
begin=$(seconds)
in_debian /opt/venv/bin/python -c 'import bertc; print(bertc.Model("/opt/model").predict(["a good film"])[0]["label"])' >"$work/answer" || bad "the wheel's first answer"
grep -qE '^(good|bad)$' "$work/answer" || bad "the wheel's first answer is $(cat "$work/answer")"
say "wheel: first answer after $(since "$begin") s"
in_debian /opt/venv/bin/bertc version | grep -q "^bertc $version$" || bad "the wheel's program has another version"
in_debian sh -c 'cd /opt/tests && /opt/venv/bin/python -W ignore -m unittest -q test_bertc' >"$work/unittest" 2>&1 || { tail -n 20 "$work/unittest"; bad "the package's tests"; }
[ $failed -eq 0 ] && say "packages: all fine"
exit $failed
