/* The machine that runs compute on: this process's rank, the number of ranks, and this rank's device. Found and opened once per
 * process; consecutive runs share it. */
#ifndef RUN_MACHINE_H
#define RUN_MACHINE_H

#include "comm/place.h"
#include "infer/device.h"
#include "run/training_options.h"

struct machine {
	struct ranks_options asked;
	struct device_options given;
	struct device_options device; /* including what was chosen */
	struct place place;
	int32_t ranks;     /* of the run; a plan counts ranks without starting them */
	int64_t replicas;  /* of each */
	struct comm *comm; /* NULL: one rank */
	struct pool *pool;
	struct backend *backend; /* the queues of this rank's device */
	double gemm_rate;        /* FLOP/s of matrix products, all ranks together; 0: unknown */
	double training_rate;    /* the same of training steps, if it was measured (run/budget.h) */
};

/* Finds out which rank this process is and how many there are. Call it before any thread is started and before anything queries
 * the GPU driver, which from then on sees only this rank's GPU. */
MUST_USE enum status machine_find(struct machine *out, const struct training_options *training);
/* How many of the run's ranks are on this process's machine, including this one. */
int32_t machine_local_ranks(const struct machine *machine);
/* Should this process start the ranks rather than be one? */
bool machine_launches(const struct machine *machine);
/* Connects to the other ranks; does nothing if that was done before. [all] */
MUST_USE enum status machine_join(struct machine *machine);
/* Takes the options as completed from a checkpoint's record. Call it before the device is opened. */
void machine_resume(struct machine *machine, const struct training_options *training);
/* Opens this rank's device if it is not open yet. A device or precision that was left open becomes a choice in the options of
 * each run on this machine. [all] */
MUST_USE enum status machine_open_device(struct machine *machine, struct options *options, const struct device_options *of_run);
/* Is the device a GPU? False until it is open. */
bool machine_on_gpu(const struct machine *machine);
/* Measures the rate of the machine's matrix products, on all ranks at once since they share caches and memory. Call it before any
 * of a device's memory is allocated. [all] */
MUST_USE enum status machine_measure_rate(struct machine *machine);
/* A zero-initialized struct is fine. After a failure, tell the other ranks first: comm_fail(). */
void machine_close(struct machine *machine);

#endif
