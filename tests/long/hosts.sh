#!/bin/sh
# Ranks of two "machines": network namespaces with a cable between. They train to the bits of two ranks of one machine,
# over TCP and through MPI; with the cable cut both end within the watchdog's limit; the same command goes on.
#   BERTC=build/bertc sh tests/long/hosts.sh
BERTC=$(realpath "${BERTC:-build/bertc}")
if [ "$(id -u)" -ne 0 ] || ! command -v ip >/dev/null || ! ip netns add bertc-test-0 2>/dev/null; then
	echo "skipped: needs root, iproute2 and network namespaces"
	ip netns del bertc-test-0 2>/dev/null
	exit 0
fi
work=$(mktemp -d) || exit 1
trap 'ip netns del bertc-test-0; ip netns del bertc-test-1; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

fail() {
	echo "FAIL: $*"
	tail -n 5 "$work"/*.log
	exit 1
}

ip netns add bertc-test-1
ip link add bertc-0 netns bertc-test-0 type veth peer name bertc-1 netns bertc-test-1
for i in 0 1; do
	ip -n bertc-test-$i addr add 10.77.0.$((i + 1))/24 dev bertc-$i
	ip -n bertc-test-$i link set bertc-$i up
	ip -n bertc-test-$i link set lo up
done

awk 'BEGIN {for (i = 0; i < 300; i++) printf "the cat sees the dog %d.\na dog likes the house %d.\n\n", i % 90, i % 7}' >"$work/text.txt"
common="pretrain --corpus $work/text.txt --model tiny --train_batch_size 16 --max_seq_length 32 --precision fp32 --threads 1 --no_progress"
short="--num_train_steps 12 --eval_steps 6 --save_checkpoints_steps 6"

# on HOST COMMAND...: with a name of its own.
on() {
	host=$1
	shift
	ip netns exec bertc-test-"$host" unshare -u sh -c "hostname host-$host; exec $*"
}

# both OUT OPTIONS: a rank on each; their statuses in $work/status-<rank>.
both() {
	out=$1
	shift
	for i in 0 1; do
		(
			on $i env RANK=$i LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 \
				timeout 120 "$BERTC" $common --out "$work/$out" "$@" >/dev/null 2>"$work/$out-$i.log"
			echo $? >"$work/status-$i"
		) &
	done
	[ -n "$cut" ] && {
		sleep "$cut"
		ip -n bertc-test-0 link set bertc-0 down
		date +%s >"$work/cut-at"
	}
	wait
}

"$BERTC" $common --out "$work/one" $short --ranks 2 >/dev/null 2>"$work/one.log" || fail "two ranks of one machine"

both tcp $short
[ "$(cat "$work"/status-*)" = "0
0" ] || fail "two machines over TCP: statuses" $(cat "$work"/status-*)
cmp "$work/one/final/model.safetensors" "$work/tcp/final/model.safetensors" || fail "over TCP the bits are others"
echo "TCP between two machines: the bits of one machine"

cut=8 both cut --num_train_steps 100000 --eval_steps 0 --save_checkpoints_steps 5 --watchdog_seconds 5
took=$(($(date +%s) - $(cat "$work/cut-at")))
[ "$(cat "$work"/status-*)" = "6
6" ] || fail "cable cut: statuses" $(cat "$work"/status-*)
[ $took -le 16 ] || fail "cable cut: $took s until both had ended"
grep -q "rank 1 on host-1 (process .*no life" "$work/cut-0.log" || fail "cable cut: rank 0 does not name rank 1"
echo "cable cut: both ended within $took s (limit 5 s)"
ip -n bertc-test-0 link set bertc-0 up
both cut --num_train_steps 100000 --eval_steps 0 --watchdog_seconds 5 --steps_this_run 3
[ "$(cat "$work"/status-*)" = "75
75" ] || fail "after the cut: statuses" $(cat "$work"/status-*)
grep -q "going on from" "$work/cut-0.log" || fail "after the cut the run began again"
echo "the same command goes on"

if ! ldd "$BERTC" | grep -q libmpi || ! command -v mpirun >/dev/null; then
	echo "MPI left out: not built in"
	exit 0
fi
# mpirun's "ssh": what it wants to run on the other host.
cat >"$work/agent" <<'EOF'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
shift
exec ip netns exec bertc-test-1 unshare -u sh -c "hostname host-1; $*"
EOF
chmod +x "$work/agent"
on 0 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --mca plm_rsh_agent "$work/agent" \
	--mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24 --host 10.77.0.1:1,10.77.0.2:1 -n 2 \
	"$BERTC" $common --out "$work/mpi" $short >/dev/null 2>"$work/mpi.log" || fail "two machines through MPI"
cmp "$work/one/final/model.safetensors" "$work/mpi/final/model.safetensors" || fail "through MPI the bits are others"
echo "MPI between two machines: the bits of one machine"
