/* cuDNN's attention without a GPU: its graphs are built and finalized, and its heuristics find engines for an H200, which
 * they do only for graphs that an engine supports, including code generation. Only loading and running the code is left
 * for a GPU. Skipped where the library is missing. */
#include <unistd.h>
#include "test.h"
#include "backend/cuda/cudnn_graph.h"

#ifndef CUDA_HOME /* defined by the Makefile */
#define CUDA_HOME "/usr/local/cuda"
#endif

static struct cudnn_library library;
static bool is_here;

/* %zu: cuDNN's version. */
static const char h200[] =
	"{\"cudnnVersion\": %zu, \"schemaVersion\": 4, \"deviceName\": \"NVIDIA H200\", \"cudaDeviceId\": 0, \"deviceVer\": 900, "
	"\"multiProcessorCount\": 132, \"driverVer\": 13000, \"maxSharedMemoryPerBlock\": 49152, "
	"\"maxSharedMemoryPerBlockOptin\": 232448, \"reservedSharedMemoryPerBlock\": 1024, \"regsPerBlock\": 65536, "
	"\"warpSize\": 32, \"maxThreadsPerBlock\": 1024, \"maxRegistersPerSM\": 65536, \"maxCtasPerSM\": 32, "
	"\"l2CacheSize\": 62914560, \"smClockRateKHz\": 1980000, \"memClockRateKHz\": 3201000, \"totalGlobalMem\": 150754820096, "
	"\"supportCoopLaunch\": 1, \"isTccDriver\": 0, \"pciDeviceId\": 0, \"maxGridSize\": [2147483647, 65535, 65535], "
	"\"maxBlockSize\": [1024, 1024, 64], \"maxThreadsPerSM\": 2048}";

static enum status try_plan(const struct cudnn_attention *attention, enum cudnn_stage stage)
{
	char device[2048];
	struct cudnn_plan plan;
	snprintf(device, sizeof device, h200, library.version());
	enum status status = cudnn_plan_make(&plan, &library, attention, NULL, device, stage);
	if (status == OK)
		assert_int_equal(plan.operation_count,
				 (attention->backward ? 23 : 16) + (attention->dropout > 0 ? attention->backward ? 5 : 3 : 0));
	cudnn_plan_release(&plan);
	return status;
}

static const struct cudnn_attention large = {.dtype = DTYPE_BF16, .sequences = 96, .heads = 16, .longest = 512, .head_size = 64};

static void an_h200_has_engines_for_every_graph(void **state)
{
	(void)state;
	if (!is_here)
		skip();
	for (int backward = 0; backward < 2; backward++) {
		for (int drops = 0; drops < 2; drops++) {
			for (int narrow = 0; narrow < 2; narrow++) {
				struct cudnn_attention a = large;
				a.backward = backward;
				a.saves = true;
				a.dropout = drops ? 0.1 : 0;
				a.dtype = narrow ? DTYPE_F16 : DTYPE_BF16;
				a.longest = narrow ? 128 : 512;
				a.heads = narrow ? 12 : 16;
				assert_ok(try_plan(&a, CUDNN_ENGINE_FOUND));
			}
		}
	}
	struct cudnn_attention inference = large;
	assert_ok(try_plan(&inference, CUDNN_ENGINE_FOUND));
}

/* A graph that no engine supports is refused with cuDNN's message and what to do. */
static void what_no_engine_takes_is_refused(void **state)
{
	(void)state;
	if (!is_here)
		skip();
	struct cudnn_attention odd = large;
	odd.head_size = 60;
	odd.backward = true;
	assert_error(ERR_RESOURCE, "does not take attention backward with 16 heads of 60 columns",
		     try_plan(&odd, CUDNN_ENGINE_FOUND));
	assert_non_null(strstr(error_last()->hint, "--attention own"));
}

/* The graphs need cuDNN's libraries, whose support checks need a libcuda: the toolkit's stub, where there is no driver.
 * The loader reads its path when a program starts. */
static void begin_again_with_libraries(char **argv)
{
	char stubs[64] = "/tmp/bertc-test-XXXXXX", link[128], path[1024];
	const char *before = getenv("LD_LIBRARY_PATH");
	if (getenv("CUDNN_STUBS") || !mkdtemp(stubs))
		return;
	snprintf(link, sizeof link, "%s/libcuda.so.1", stubs);
	snprintf(path, sizeof path, "%s%s" CUDA_HOME "/lib64:%s", before ? before : "", before ? ":" : "", stubs);
	if (symlink(CUDA_HOME "/lib64/stubs/libcuda.so", link) != 0 || setenv("LD_LIBRARY_PATH", path, 1) != 0 ||
	    setenv("CUDNN_STUBS", stubs, 1) != 0)
		return;
	execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	(void)argc;
	begin_again_with_libraries(argv);
	is_here = cudnn_library_open(&library) == OK;
	if (!is_here)
		print_message("%s: left out\n", error_last()->message);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_h200_has_engines_for_every_graph),
		cmocka_unit_test(what_no_engine_takes_is_refused),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (getenv("CUDNN_STUBS") && folder_remove(getenv("CUDNN_STUBS")) != OK)
		print_message("%s\n", error_last()->message);
	return failed;
}
