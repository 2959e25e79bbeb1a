/* The test of NCCL on a GPU, on the emulated device: what waits for a GPU must compile and run until there is one. */
#include "../gpu/test_nccl.c"
