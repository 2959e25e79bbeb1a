#!/bin/sh
# A private Slurm on this machine, with two nodes that are both this machine: four tasks on one node, recipes/slurm.sbatch
# on two, jobs that are asked to stop, or lose a task, and resume automatically.
#   sh tests/long/slurm.sh      from the repository's root, as root; BERTC names the program
# Exit code 77: skipped, Slurm is not installed (packages slurm-wlm and munge).
set -u
bertc=$(realpath "${BERTC:-build/bertc}")
here=$(dirname "$0")
work=$(mktemp -d) || exit 1
chmod 755 "$work"
port=$((17000 + $$ % 4000))
failed=0
PATH=$PATH:/usr/sbin

stop() { [ -s "$work/$1.pid" ] && kill "$(cat "$work/$1.pid")" 2>/dev/null; }
cleanup() {
	scancel --quiet --user root 2>/dev/null
	sleep 1
	stop slurmctld; stop slurmd-node1; stop slurmd-node2
	sleep 1
	stop munged
	sleep 1
	rm -rf "$work"
}
skip() {
	echo "SKIPPED: $1"
	rm -rf "$work"
	exit 77
}
for program in slurmctld slurmd munged srun sbatch; do
	command -v $program >/dev/null || skip "there is no '$program' (packages slurm-wlm and munge)"
done
[ "$(id -u)" -eq 0 ] || skip "Slurm's daemons want to be started by root"
trap cleanup EXIT
trap 'exit 130' INT TERM

dd if=/dev/urandom of="$work/munge.key" bs=1 count=1024 2>/dev/null && chmod 400 "$work/munge.key"
cat >"$work/slurm.conf" <<-CONF
	ClusterName=bertc
	SlurmctldHost=$(hostname -s)(127.0.0.1)
	SlurmUser=root
	SlurmdUser=root
	AuthType=auth/munge
	AuthInfo=socket=$work/munge.sock
	StateSaveLocation=$work/state
	SlurmdSpoolDir=$work/spool-%n
	SlurmctldPidFile=$work/slurmctld.pid
	SlurmdPidFile=$work/slurmd-%n.pid
	SlurmctldLogFile=$work/slurmctld.log
	SlurmdLogFile=$work/slurmd-%n.log
	SlurmctldPort=$port
	ProctrackType=proctrack/linuxproc
	TaskPlugin=task/none
	JobAcctGatherType=jobacct_gather/none
	SelectType=select/cons_tres
	SelectTypeParameters=CR_Core
	ReturnToService=2
	MpiDefault=none
	SlurmdParameters=config_overrides
	NodeName=node1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=4 RealMemory=2000
	NodeName=node2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=4 RealMemory=2000
	PartitionName=all Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
munged --force --socket="$work/munge.sock" --key-file="$work/munge.key" --pid-file="$work/munged.pid" \
	--log-file="$work/munged.log" --seed-file="$work/munge.seed" || exit 1
mkdir "$work/state" && slurmctld && slurmd -N node1 && slurmd -N node2 || { tail "$work"/*.log; exit 1; }
for i in $(seq 30); do
	[ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && break
	sleep 1
done
[ "$(sinfo -h -t idle -o %D)" = 2 ] || { sinfo; tail -n 5 "$work"/*.log; exit 1; }

. "$here/ranks.inc"
small_world || exit 1
state_of() { scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
step_of() { sed -n 's/.*"step":\([0-9]*\),.*/\1/p' "$work/$1/metrics.jsonl" 2>/dev/null | tail -1; }
# until_state JOB STATE...
until_state() {
	for i in $(seq 1200); do
		state=$(state_of "$1")
		case " $2 " in *" $state "*) return 0 ;; esac
		sleep 0.2
	done
	bad "job $1 is $state, not $2"
	return 1
}
until_step() {
	for i in $(seq 600); do
		step=$(step_of "$1")
		[ "${step:-0}" -ge "$2" ] && return 0
		sleep 0.1
	done
	bad "$1 did not reach step $2"
}

echo "one rank"
"$bertc" $(arguments alone) --quiet 2>"$work/error" || { tail -5 "$work/error"; exit 1; }

echo "srun, four tasks of one node"
if srun -N1 -n4 "$bertc" $(arguments node) >"$work/node.log" 2>&1; then
	same_curve alone node 1e-5 || bad "the curve of four tasks is another"
	grep -h "shared memory" "$work/node.log" | head -1
else
	bad "srun ended with status $?"
	tail -5 "$work/node.log"
fi

echo "sbatch, two nodes of two tasks"
submit() { all=$(arguments "$@"); BERTC=$bertc ARGUMENTS=${all#pretrain } MASTER_ADDR=127.0.0.1 sbatch --parsable --export=ALL \
	--output="$work/$1.log" "$here/../../recipes/slurm.sbatch"; }
job=$(submit nodes)
until_state "$job" "COMPLETED FAILED" && [ "$state" = COMPLETED ] && { same_curve alone nodes 1e-5 || bad "the curve of two nodes is another"; } ||
	{ bad "the job of two nodes: $state"; tail -5 "$work/nodes.log"; }

echo "a job that is asked to stop resumes automatically"
job=$(submit stopped)
until_step stopped 25
scancel --signal=USR1 "$job"
until_state "$job" "PENDING COMPLETED FAILED"
[ "$state" = PENDING ] && echo "  stopped at step $(step_of stopped), in the queue again"
scontrol update jobid="$job" StartTime=now 2>/dev/null
until_state "$job" "COMPLETED FAILED" && [ "$state" = COMPLETED ] && { same_curve nodes stopped 0 || bad "the job that stopped has other bits"; } ||
	{ bad "the job that was stopped: $state"; tail -5 "$work/stopped.log"; }

echo "a task dies"
job=$(submit died --watchdog_seconds 10)
until_step died 25
for task in $(pgrep -f -- "--out $work/died"); do
	[ "$(tr '\0' '\n' <"/proc/$task/environ" 2>/dev/null | sed -n 's/^SLURM_PROCID=//p')" = 3 ] && kill -9 "$task"
done
until_state "$job" "PENDING COMPLETED FAILED"
grep -h "^bertc:.*rank 3" "$work/died.log" | head -1 | grep . || bad "it is not said which rank died"
scontrol update jobid="$job" StartTime=now 2>/dev/null
until_state "$job" "COMPLETED FAILED" && [ "$state" = COMPLETED ] && { same_curve nodes died 0 || bad "the job that lost a task has other bits"; } ||
	{ bad "the job that lost a task: $state"; tail -5 "$work/died.log"; }
[ $failed -eq 0 ] && echo "ok"
exit $failed
