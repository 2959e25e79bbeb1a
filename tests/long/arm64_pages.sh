#!/bin/sh
# Memory pages of 4, 16, and 64 KiB on arm64: whole machines emulated by qemu, one for each kernel, since programs under qemu-user
# have the pages of this machine. In each: from text to a served model, a kill, two ranks; all bits must be those under qemu-user.
# Then the test programs that have been built and whose paths begin with one of PAGES_TESTS.
#   KERNELS="vmlinuz-A vmlinuz-B" make test-long ARCH=arm64 TESTS=arm64_pages
# KERNELS are files from /boot of packages, which need not be installed: Debian's linux-image-arm64 (4 KiB) and
# linux-image-arm64-16k, Ubuntu's linux-image-generic-64k. BUSYBOX is the program of Debian's busybox-static:arm64 (default:
# downloaded).
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/long/world.inc

# Runs here and in each machine, from one text: awks differ. What must be the same is in lines that begin with "bits".
from_text_to_answers() {
	begin
	cp "$1"/* "$work"
	small="--quiet --train_batch_size 4 --max_seq_length 32 --num_train_steps 20"
	"$bertc" version
	"$bertc" vocab --quiet --corpus "$work/text" --vocab_size 120 --out "$work/vocab.txt" || bad vocab
	"$bertc" prepare --quiet --corpus "$work/text" --vocab_file "$work/vocab.txt" --out "$work/shard" || bad prepare
	for run in straight killed ranks; do
		set -- pretrain $small --data "$work/shard" --vocab_file "$work/vocab.txt" --model "$work/config.json" \
			--save_checkpoints_steps 10 --threads 2 --out "$work/$run"
		[ $run != ranks ] || set -- "$@" --ranks 2 --threads 1
		if [ $run = killed ]; then
			"$bertc" "$@" &
			until [ -e "$work/killed/checkpoint-10" ]; do sleep 0.1; done
			kill -9 $!
			wait $! 2>/dev/null
		fi
		"$bertc" "$@" || bad "$run"
	done
	cmp "$work/straight/final/model.safetensors" "$work/killed/final/model.safetensors" || bad "not as if it had not been killed"
	"$bertc" finetune $small --task classification --model "$work/straight" --train "$work/train.tsv" --out "$work/tuned" ||
		bad finetune
	"$bertc" predict --quiet --model "$work/tuned" "$work/lines" --out "$work/answers" || bad predict
	"$bertc" embed --quiet --model "$work/straight" "$work/lines" --out "$work/vectors.npy" || bad embed
	"$bertc" serve --model "$work/straight" --threads 1 --no_progress --listen 127.0.0.1:0 >"$work/serve" 2>&1 &
	until address=$(grep -o 'http://127[^ ]*' "$work/serve"); do sleep 0.1; done
	wget -q -O "$work/served" --header 'Content-Type: application/json' --post-data '{"inputs": ["the cat", "a river"]}' \
		"$address/embed" || bad serve
	kill $!
	wait $! || bad "serve ends with $?"
	for file in vocab.txt shard.bin straight/final/model.safetensors ranks/final/model.safetensors tuned/final/model.safetensors \
		answers vectors.npy served; do
		echo "bits $(sha256sum <"$work/$file" | cut -c1-64) $file"
	done
	[ $failed -ne 0 ] || echo "bits all"
}
if [ "${1:-}" = inside ]; then
	from_text_to_answers "$2" 2>&1
	exit $failed
fi

[ -n "${KERNELS:-}" ] || { echo "KERNELS names no kernels (see the head of $0): left out"; exit 77; }
for program in qemu-system-aarch64 cpio zstd; do
	command -v $program >/dev/null || { echo "no $program (packages qemu-system-arm, cpio, zstd): left out"; exit 77; }
done
build=${BUILD:-build-arm64}
begin
small_text 100
small_config 64 2 64
world=$work folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder" "$world"' EXIT
busybox=${BUSYBOX:-$folder/bin/busybox} root=$folder/root programs=
[ -e "$busybox" ] || (cd "$folder" && apt-get -qq download busybox-static:arm64 && dpkg-deb -x busybox*.deb .) || exit 1
mkdir -p "$root/bin" "$root/tmp" "$root/proc" "$root/sys" "$root/dev"
cp "$busybox" "$root/bin/busybox" && cp -r tests "$root/" && cp -r "$world" "$root/world" || exit 1
for prefix in ${PAGES_TESTS-base/test_file base/test_memory comm weights}; do
	programs="$programs $(find "$build/tests/" -path "$build/tests/$prefix*" -type f -name 'test_*' -perm -1 | sort | tr '\n' ' ')"
done
for program in "$build/bertc" $programs; do
	mkdir -p "$root/$(dirname "$program")" && aarch64-linux-gnu-strip -o "$root/$program" "$program" || exit 1
	LD_TRACE_LOADED_OBJECTS=1 "$program" | grep -o '/lib/[^ ]*'
done | sort -u | cpio --quiet -pdL "$root"
cat >"$root/init" <<-INIT
	#!/bin/busybox sh
	/bin/busybox --install -s /bin
	mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
	mkdir /dev/pts /dev/shm; mount -t devpts pts /dev/pts; ip link set lo up; date -s @$(date +%s)
	uname -r; grep -m 1 KernelPageSize /proc/self/smaps
	BERTC=$build/bertc sh tests/long/arm64_pages.sh inside /world
	[ -z "$programs" ] || BUILD=$build sh tests/run.sh $programs
	poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc) >"$folder/initrd"

# A kernel that qemu starts: Ubuntu's is a self-unpacking EFI program within another.
unpack() {
	cp "$1" "$folder/kernel"
	aarch64-linux-gnu-objcopy --dump-section ".linux=$folder/kernel" "$1" "$folder/rest" 2>/dev/null
	[ "$(head -c 8 "$folder/kernel" | tail -c 4)" = zimg ] || return 0
	set -- $(od -A n -t u4 -j 8 -N 8 "$folder/kernel")
	tail -c +$(($1 + 1)) "$folder/kernel" | head -c "$2" | zstd -dq >"$folder/image" && mv "$folder/image" "$folder/kernel"
}

BERTC=$build/bertc sh tests/long/arm64_pages.sh inside "$world" >"$folder/here"
for kernel in $KERNELS; do
	unpack "$kernel"
	qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on -smp 2 -m 3G -nographic -nic none -no-reboot -kernel "$folder/kernel" \
		-initrd "$folder/initrd" -append "console=ttyAMA0 quiet panic=-1" </dev/null | tr -d '\r' | tee "$folder/there"
	grep '^bits ' "$folder/here" >"$folder/a" && grep '^bits ' "$folder/there" >"$folder/b"
	diff "$folder/a" "$folder/b" && grep -q 'bits all' "$folder/b" || bad "$kernel: not the bits under qemu-user"
	[ -z "$programs" ] || grep -q ' passed, 0 failed' "$folder/there" || bad "$kernel: tests"
done
exit $failed
