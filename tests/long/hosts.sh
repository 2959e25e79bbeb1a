#!/bin/sh
# Two hosts of one, two and four ranks each, as network namespaces joined by a cable: the same bits as the same number of
# ranks on one machine, and the curve of a single rank, over TCP and over MPI; a host that dies or loses its cable ends the
# run on the other host; the same command resumes.
#   sh tests/long/hosts.sh      from the repository's root, as root; BERTC names the program, STEPS the length of the runs
# Exit code 77: skipped, this machine does not allow namespaces.
set -u
bertc=$(realpath "${BERTC:-build/bertc}")
here=$(dirname "$0")
work=$(mktemp -d) || exit 1
a=bertc-a-$$ b=bertc-b-$$ net=10.$((200 + $$ % 50)).$(($$ / 50 % 250))
failed=0

# hosts_end: ends every process of both hosts
hosts_end() {
	for host in $a $b; do
		for pid in $(ip netns pids $host 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
	done
	wait
}
cleanup() {
	hosts_end
	ip netns del $a 2>/dev/null
	ip netns del $b 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

skip() {
	echo "SKIPPED: $1"
	exit 77
}
command -v ip >/dev/null || skip "there is no 'ip' (package iproute2)"
ip netns add $a 2>"$work/error" && ip netns add $b 2>>"$work/error" || skip "no network namespaces here: $(tail -1 "$work/error")"
# Names of network interfaces have at most 15 characters.
ip link add ba$$ netns $a type veth peer name bb$$ netns $b 2>"$work/error" || skip "no pair of interfaces: $(tail -1 "$work/error")"
ip -n $a link set lo up && ip -n $b link set lo up && ip -n $a addr add $net.1/24 dev ba$$ && ip -n $b addr add $net.2/24 dev bb$$ &&
	ip -n $a link set ba$$ up && ip -n $b link set bb$$ up || exit 1

. "$here/ranks.inc"
small_world || exit 1

say() { echo "$1"; }

# on HOST COMMAND...: runs COMMAND in the host's namespace, under a host name of its own
on() {
	host=$1
	shift
	ip netns exec "$host" unshare --uts sh -c 'hostname $0; exec "$@"' "host-${host#bertc-}" "$@"
}

each=2 # ranks per host

# start RUN [MORE...]: starts the ranks of both hosts, as a launcher such as torchrun would. Process ids go into $pids.
start() {
	pids=
	for rank in $(seq 0 $((2 * each - 1))); do
		host=$([ $rank -lt $each ] && echo $a || echo $b)
		on $host env RANK=$rank WORLD_SIZE=$((2 * each)) LOCAL_RANK=$((rank % each)) LOCAL_WORLD_SIZE=$each \
			MASTER_ADDR=$net.1 MASTER_PORT=29511 \
			"$bertc" $(arguments "$@") >"$work/out.$rank" 2>"$work/err.$rank" </dev/null &
		pids="$pids $!"
	done
}

# finish: waits for all ranks; exit codes go into $statuses
finish() {
	statuses=
	for pid in $pids; do
		wait "$pid"
		statuses="$statuses $?"
	done
}

expect() {
	[ "$statuses" = "$1" ] && return 0
	bad "$2: statuses$statuses, expected$1"
	tail -n 3 "$work"/err.?
	return 1
}

step_of() { sed -n 's/.*"step":\([0-9]*\),.*/\1/p' "$work/$1/metrics.jsonl" 2>/dev/null | tail -1; }

# until_step RUN STEP
until_step() {
	for i in $(seq 600); do
		step=$(step_of "$1")
		[ "${step:-0}" -ge "$2" ] && return 0
		sleep 0.1
	done
	bad "$1 did not reach step $2"
}

say "one rank"
"$bertc" $(arguments alone) --quiet 2>"$work/err.0" || { tail -5 "$work/err.0"; exit 1; }

for each in 1 2 4; do
	ranks=$((2 * each))
	say "$ranks ranks of one host"
	"$bertc" $(arguments local-$ranks --ranks $ranks) --quiet 2>"$work/err.0" || { tail -5 "$work/err.0"; exit 1; }
	same_curve alone local-$ranks 1e-5 || bad "the curve of $ranks ranks is another"

	say "two hosts of $each over TCP"
	start tcp-$ranks; finish
	expect "$(printf ' 0%.0s' $(seq $ranks))" "over TCP" && { same_curve local-$ranks tcp-$ranks 0 || bad "the bits over TCP are others"; }
	cmp "$work/local-$ranks/final/model.safetensors" "$work/tcp-$ranks/final/model.safetensors" || bad "the weights over TCP are others"
done
each=2

say "a host dies"
start killed --watchdog_seconds 10
until_step killed 25
began=$(date +%s)
for pid in $(ip netns pids $b); do kill -9 "$pid"; done
finish
took=$(($(date +%s) - began))
case $statuses in
" 6 6 "*) [ $took -le 10 ] && echo "  the other host's ranks ended with status 6 after $took s: $(grep -h '^bertc:' "$work/err.0" | tail -1)" ||
	bad "a dead host was noticed only after $took s" ;;
*) bad "a dead host: statuses$statuses"; tail -n 3 "$work"/err.? ;;
esac
start killed --watchdog_seconds 10; finish
expect " 0 0 0 0" "going on after a dead host" && { same_curve tcp-4 killed 0 || bad "going on after a dead host has other bits"; }

say "a cable is pulled"
start cut --watchdog_seconds 5
until_step cut 25
began=$(date +%s)
ip -n $b link set bb$$ down
finish
took=$(($(date +%s) - began))
ip -n $b link set bb$$ up
expect " 6 6 6 6" "without the cable" && echo "  all ranks ended with status 6 after $took s: $(grep -h '^bertc:' "$work/err.0" | tail -1)"
[ $took -le 20 ] || bad "a missing cable was noticed only after $took s"
grep -q "rank [23] on host-b" "$work/err.0" || bad "rank 0 does not say which rank it has lost"
start cut --watchdog_seconds 5; finish
expect " 0 0 0 0" "going on with the cable" && { same_curve tcp-4 cut 0 || bad "going on after the cable has other bits"; }

if command -v mpirun >/dev/null && "$bertc" version | grep -q "MPI:.*[0-9]$"; then
	# Starts mpirun's daemon on the other host, in place of ssh: HOST COMMAND...
	cat >"$work/agent" <<-SH
		#!/bin/sh
		while [ "\${1#-}" != "\$1" ]; do shift; done
		case \$1 in $net.1) host=$a ;; *) host=$b ;; esac
		shift
		exec ip netns exec \$host unshare --uts sh -c "hostname host-\${host#bertc-}; \$*"
	SH
	chmod +x "$work/agent"
	for each in 1 2 4; do
		ranks=$((2 * each))
		say "two hosts of $each over MPI"
		printf '%s slots=%d\n' $net.1 $each $net.2 $each >"$work/hosts"
		on $a timeout 300 mpirun --allow-run-as-root --hostfile "$work/hosts" -np $ranks --map-by slot --bind-to none \
			--mca plm_rsh_agent "$work/agent" --mca oob_tcp_if_include $net.0/24 --mca btl_tcp_if_include $net.0/24 \
			--mca btl self,vader,tcp "$bertc" $(arguments mpi-$ranks) >"$work/mpi.out" 2>&1
		status=$?
		if [ $status -eq 0 ]; then
			same_curve local-$ranks mpi-$ranks 0 || bad "the bits over MPI are others"
		else
			bad "mpirun ended with status $status"
			tail -n 8 "$work/mpi.out"
		fi
	done
else
	echo "MPI not tried: there is no mpirun, or bertc finds no MPI"
fi
[ $failed -eq 0 ] && echo "ok"
exit $failed
