/* Instances of a traced corpus from which tests make steps, open for the whole test program. */
#ifndef TESTS_DATA_STEPS_TEST_H
#define TESTS_DATA_STEPS_TEST_H

#include "data/pretraining/instances.h"
#include "instances_test.h"

static struct corpus_map map;
static struct shard shard;
static struct instances *instances;

static inline int open_all(void **state)
{
	struct instance_settings settings = usual_settings();
	if (test_folder_make(state) != 0)
		return -1;
	write_traced_shard(test_path("s"), 21, 60, 12, 25, 0, 60, &map);
	assert_ok(shard_open(&shard, test_path("s")));
	assert_ok(instances_open(&instances, &shard, 1, &settings));
	return 0;
}

static inline int close_all(void **state)
{
	instances_close(instances);
	shard_close(&shard);
	return test_folder_drop(state);
}

#endif
