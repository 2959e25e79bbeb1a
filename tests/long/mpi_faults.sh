#!/bin/sh
# MPI calls that fail (mpi_faults.c): two ranks under mpirun, whose messages go through MPI. Both must end within a minute
# with a message and one of bertc's own exit codes (or their run finishes with the right bits), and the same command without
# the fault must resume and give the right bits.
#   sh tests/long/mpi_faults.sh        FUNCTIONS="Isend Irecv" NUMBERS="1 7" RANKS="0 1" for a selection; BERTC names the program
set -u
. "$(dirname "$0")/world.inc"
begin
command -v mpirun >/dev/null && command -v mpicc >/dev/null || { echo "SKIPPED: there is no mpirun or no mpicc"; exit 0; }
mpicc -std=gnu11 -O1 -shared -fPIC -o "$work/mpi_faults.so" "$(dirname "$0")/mpi_faults.c" || exit 1
small_text 60
small_config 16 1 32
"$bertc" vocab --quiet --corpus "$work/text" --vocab_size 120 --out "$work/vocab.txt" || exit 1

# train FOLDER [FAULT]
train() {
	timeout 120 mpirun --allow-run-as-root --oversubscribe -n 2 -x BERTC_TRANSPORT=mpi ${2:+-x LD_PRELOAD="$work/mpi_faults.so" -x MPI_FAULT="$2" \
		-x MPI_FAULT_HIT="$work/hit"} "$bertc" pretrain $small --corpus "$work/text" --model "$work/config.json" --vocab_file "$work/vocab.txt" \
		--num_train_steps 12 --save_checkpoints_steps 4 --eval_steps 0 --watchdog_seconds 10 --out "$work/$1" >"$work/said" 2>&1 </dev/null
	status=$?
}

same() {
	cmp "$work/straight/final/model.safetensors" "$work/run/final/model.safetensors" || bad "$fault: $1"
}

train straight
[ $status -eq 0 ] || { cat "$work/said"; exit 1; }
faults=0 ended=0
for function in ${FUNCTIONS:-Init_thread Comm_dup Comm_rank Comm_size Isend Irecv Recv Iprobe Test Testall Waitall Cancel Ibarrier Finalize}; do
	for rank in ${RANKS:-0 1}; do
		for number in ${NUMBERS:-1 2 5 20 80}; do
			fault=$function:$number:$rank
			rm -rf "$work/run" "$work/hit"
			train run "$fault"
			[ -e "$work/hit" ] || break
			faults=$((faults + 1))
			case $status in
			0) same "finished in spite of it" && continue ;;
			124) bad "$fault: it did not end" ;;
			# mpirun's own exit code for a rank that left without MPI_Finalize; the run was over by then.
			1) same "exit status 1: $(tail -3 "$work/said")" ;;
			*) grep -q '^bertc: ' "$work/said" || bad "$fault: exit status $status without a word" ;;
			esac
			ended=$((ended + 1))
			train run
			[ $status -eq 0 ] || { bad "after $fault: exit status $status: $(tail -3 "$work/said")"; continue; }
			same "resumed"
		done
	done
	echo "$function: $faults faults so far, $ended of them ended the run"
done
exit $failed
