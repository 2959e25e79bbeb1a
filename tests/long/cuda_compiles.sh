#!/bin/sh
# Where the toolkit is installed, the programs for machines with a GPU must compile and link for every generation, without
# warnings.
set -eu
cd "$(dirname "$0")/../.."
CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
if [ ! -x "$CUDA_HOME/bin/nvcc" ]; then
	echo "no nvcc: left out"
	exit 0
fi
make --no-print-directory CUDA=1 WERROR=1 BUILD="${BUILD:-build}" all gpu-programs
"${BUILD:-build}/bertc" version | grep '^devices: cpu, cuda$'
