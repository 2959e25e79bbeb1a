/* The machine that runs compute on: which of how many ranks this process is, and its device. Found and opened once in a process;
 * runs that follow each other share it. */
#ifndef RUN_MACHINE_H
#define RUN_MACHINE_H

#include "comm/place.h"
#include "infer/device.h"
#include "run/choices.h"

struct machine_settings {
	int64_t ranks, n_gpus; /* 0 = not said */
	int64_t replicas;      /* shares of the batch that a rank computes one after the other; at least 1 */
	int64_t max_restarts;
	double watchdog_seconds;
	struct device_settings device;
};

struct machine {
	struct machine_settings settings; /* as given */
	struct device_settings device;    /* with what was chosen */
	struct place place;
	int32_t ranks;     /* of the run; a plan counts them without starting them */
	int64_t replicas;  /* of each */
	struct comm *comm; /* NULL: one rank */
	struct pool *pool;
	struct backend *backend; /* the queues of this rank's device */
	double gemm_rate;        /* FLOP/s of the matrix products of all ranks; 0: not known */
};

/* Which rank this process is, and how many there are. Before any thread is started and before anything asks the GPU's driver,
 * which from then on sees this rank's GPU alone. */
MUST_USE enum status machine_find(struct machine *out, const struct machine_settings *settings);
/* How many ranks of the run share this process's machine, itself among them. */
int32_t machine_local_ranks(const struct machine *machine);
/* Is this process to start the ranks instead of being one? */
bool machine_launches(const struct machine *machine);
/* Meets the other ranks, once. [all] */
MUST_USE enum status machine_join(struct machine *machine);
/* The settings as a checkpoint's record has completed them, before the device is opened. */
void machine_resume(struct machine *machine, const struct machine_settings *settings);
/* Opens this rank's device, once. Device and precision that were left open become choices, of each run on it. [all] */
MUST_USE enum status machine_open_device(struct machine *machine, struct choices *choices);
/* What the machine's matrix products reach: before a device's memory is given out, in all ranks at once, since they share caches
 * and memory. [all] */
MUST_USE enum status machine_measure_rate(struct machine *machine);
/* Zero-initialised is fine. After a failure tell the others first: comm_fail(). */
void machine_close(struct machine *machine);

#endif
