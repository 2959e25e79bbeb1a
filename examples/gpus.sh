#!/bin/sh
# The same run on all GPUs of a machine, without a launcher, or on the machines of a Slurm cluster.
#   TEXT=folder sh gpus.sh            RANKS=2 on a machine without GPUs; OUT=folder; BERTC=program
#   TEXT=folder sh gpus.sh --slurm    queues recipes/slurm.sbatch, after you have set nodes and tasks in it
set -eu
here=$(dirname "$0") bertc=${BERTC:-bertc} out=${OUT:-runs/base}
recipes=$here/../recipes
[ -d "$recipes" ] || recipes=$here/../../../bertc/recipes # where `make install` puts them
arguments="--config $recipes/bert_base.conf --corpus $TEXT --out $out"
if [ "${1:-}" = --slurm ]; then
	BERTC=$bertc ARGUMENTS=$arguments sbatch --export=ALL "$recipes/slurm.sbatch"
elif [ -n "${RANKS:-}" ]; then
	# shellcheck disable=SC2086
	"$bertc" pretrain $arguments --ranks "$RANKS" ${MORE:-}
else
	# shellcheck disable=SC2086
	"$bertc" pretrain $arguments --n_gpus "$(nvidia-smi -L | wc -l)" ${MORE:-}
fi
