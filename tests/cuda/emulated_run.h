/* Shared by the tests of whole runs on the emulated device: the program to run, the curves of runs, and the device's
 * report. */
#ifndef TESTS_CUDA_EMULATED_RUN_H
#define TESTS_CUDA_EMULATED_RUN_H

#include <inttypes.h>
#include "../cmd/small_run.h"

/* From now on program() runs the program with the emulated device, which keeps no cache of choices; then small_run_make(). */
static inline int emulated_run_setup(void **state)
{
	static char program_path[256];
	const char *build = getenv("BUILD");
	snprintf(program_path, sizeof program_path, "%s/emulated/bertc", build ? build : "build");
	setenv("BERTC", program_path, 1);
	setenv("BERTC_CACHE", "", 1);
	setenv("EMULATED_RACES", "0", 1); /* test_operations looks for them */
	return small_run_make(state, 5);
}

/* The largest relative difference between the losses of the runs' first `steps` steps. */
static inline double distance(const char *a, const char *b, int64_t steps)
{
	char left[PATH_BYTES], right[PATH_BYTES];
	double most = 0;
	snprintf(left, sizeof left, "%s/%s/metrics.jsonl", test_folder, a);
	snprintf(right, sizeof right, "%s/%s/metrics.jsonl", test_folder, b);
	for (int64_t step = 1; step <= steps; step++) {
		double x = metric_at(left, step, "loss"), y = metric_at(right, step, "loss");
		assert_true(isfinite(x) && isfinite(y));
		most = fmax(most, fabs(x - y) / x);
	}
	return most;
}

static inline void assert_same_end(const char *a, const char *b)
{
	char left[PATH_BYTES], right[PATH_BYTES];
	snprintf(left, sizeof left, "%s/%s/final/model.safetensors", test_folder, a);
	snprintf(right, sizeof right, "%s/%s/final/model.safetensors", test_folder, b);
	assert_same_file(left, right);
}

/* What the device reported at the end of the last run between report_begin() and report_read() (EMULATED_REPORT). */
struct device_report {
	size_t most, pinned; /* peak bytes in use */
	int64_t launches, allocations;
};

static inline void report_begin(void)
{
	setenv("EMULATED_REPORT", test_path("report"), 1);
}

static inline struct device_report report_read(void)
{
	struct device_report r;
	struct buffer text = {0};
	unsetenv("EMULATED_REPORT");
	assert_ok(file_read(test_path("report"), 1 << 12, &text));
	int found = sscanf(buffer_string(&text), "%zu %zu %" SCNd64 " %" SCNd64, &r.most, &r.pinned, &r.launches, &r.allocations);
	assert_int_equal(found, 4);
	buffer_release(&text);
	return r;
}

#endif
