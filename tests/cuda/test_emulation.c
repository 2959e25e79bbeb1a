/* The emulated device: it notices errors that would fail on a GPU, and treats queues, events and graphs as CUDA does. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test.h"
#include "emulation.h"
#include "faults.h"
#include "backend/cuda/kernels.h"

enum { COUNT = 64, BLOCKS = 2 };

static cudaStream_t stream;
static float *data, *out;

static void *on_device(const void *host, size_t bytes)
{
	void *memory;
	assert_int_equal(cudaMalloc(&memory, bytes), cudaSuccess);
	if (host)
		assert_int_equal(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice), cudaSuccess);
	return memory;
}

static void begin(void)
{
	float values[COUNT];
	for (int i = 0; i < COUNT; i++)
		values[i] = (float)i;
	assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
	data = on_device(values, sizeof values);
	out = on_device(NULL, COUNT * BLOCKS * sizeof(float));
}

static void end(void)
{
	cudaFree(data);
	cudaFree(out);
	cudaStreamDestroy(stream);
}

/* In a child: 0 if the kernel ran with the right result, 1 with another result; the child aborts if the error is noticed. */
static int outcome(enum fault fault)
{
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		float host_place[COUNT * BLOCKS] = {0}, got[COUNT * BLOCKS];
		assert_true(freopen("/dev/null", "w", stderr) != NULL);
		float *to = fault == FAULT_HOST_MEMORY ? host_place : out;
		fault_launch(stream, fault, data, COUNT, to, BLOCKS);
		cudaStreamSynchronize(stream);
		cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
		for (int i = 0; i < COUNT * BLOCKS; i++)
			if (got[i] != 2 * (float)(i % COUNT))
				_exit(1);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? SIGABRT : WEXITSTATUS(status);
}

static void faults_are_noticed(void **state)
{
	begin();
	assert_int_equal(outcome(FAULT_NONE), 0);
	assert_int_equal(outcome(FAULT_PRODUCT_NONE), 0);
	assert_int_equal(outcome(FAULT_EARLY_NONE), 0);
	assert_int_equal(outcome(FAULT_PRODUCT_READ_EARLY), 1);
	for (int fault = FAULT_NONE + 1; fault < FAULT_COUNT; fault++) {
		int result = outcome((enum fault)fault);
		if (result != SIGABRT)
			print_error("fault %d: outcome %d\n", fault, result);
		assert_int_equal(result, SIGABRT);
	}
	end();
}

static void *synchronize(void *of)
{
	cudaStreamSynchronize(of);
	return NULL;
}

/* A thread that launches is not taken for the kernel that another thread runs meanwhile. */
static void launches_are_not_checked(void **state)
{
	const struct kernel_cast nothing = {.dtype = DTYPE_F32};
	pthread_t thread;
	begin();
	for (int i = 0; i < 500; i++)
		fault_launch(stream, FAULT_NONE, data, COUNT, out, BLOCKS);
	assert_int_equal(pthread_create(&thread, NULL, synchronize, stream), 0);
	for (int i = 0; i < 1000000; i++)
		assert_int_equal(kernel_cast(stream, &nothing), cudaSuccess);
	pthread_join(thread, NULL);
	end();
}

/* Work waits in its stream; a graph runs what was recorded, each time it is launched. */
static void streams_and_graphs(void **state)
{
	begin();
	float *pinned;
	assert_int_equal(cudaHostAlloc((void **)&pinned, COUNT * sizeof(float), cudaHostAllocDefault), cudaSuccess);
	pinned[0] = 1;
	cudaMemcpyAsync(data, pinned, sizeof(float), cudaMemcpyHostToDevice, stream);
	pinned[0] = 2; /* too early: this is what arrives */
	cudaStreamSynchronize(stream);
	float got;
	cudaMemcpy(&got, data, sizeof got, cudaMemcpyDeviceToHost);
	assert_true(got == 2);

	cudaGraph_t graph;
	cudaGraphExec_t run;
	int64_t before = emulated_launches;
	assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
	fault_launch(stream, FAULT_NONE, data, COUNT, out, BLOCKS);
	assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
	assert_int_equal(cudaGraphInstantiate(&run, graph, 0), cudaSuccess);
	cudaGraphDestroy(graph);
	cudaStreamSynchronize(stream);
	assert_int_equal(emulated_launches, before);
	for (int i = 0; i < 3; i++)
		cudaGraphLaunch(run, stream);
	cudaStreamSynchronize(stream);
	assert_int_equal(emulated_launches, before + 3);
	cudaGraphExecDestroy(run);

	/* Meanwhile nothing may wait or allocate; a forked stream must rejoin. */
	void *memory;
	cudaStream_t other;
	cudaEvent_t event;
	cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
	cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
	cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
	assert_int_not_equal(cudaMalloc(&memory, 16), cudaSuccess);
	assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
	cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
	cudaEventRecord(event, stream);
	cudaStreamWaitEvent(other, event, 0);
	fault_launch(other, FAULT_NONE, data, COUNT, out, 1);
	assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
	cudaGetLastError();
	cudaEventDestroy(event);
	cudaStreamDestroy(other);
	cudaFreeHost(pinned);
	end();
}

enum forbidden {
	CAPTURE_SYNCHRONIZES,
	CAPTURE_ASKS_STREAM,
	CAPTURE_WAITS_FOR_ITS_EVENT,
	CAPTURE_ASKS_ITS_EVENT,
	CAPTURE_WAITS_FOR_EARLIER_WORK,
	CAPTURE_RELEASES,
	CAPTURE_COPIES_AT_ONCE,
	CAPTURE_SETS_AT_ONCE,
	CAPTURE_LAUNCHES_A_GRAPH,
	FORBIDDEN_COUNT
};

static cudaError_t do_forbidden(enum forbidden what, cudaEvent_t event, cudaGraphExec_t graph)
{
	float value;
	switch (what) {
	case CAPTURE_SYNCHRONIZES: return cudaStreamSynchronize(stream);
	case CAPTURE_ASKS_STREAM: return cudaStreamQuery(stream);
	case CAPTURE_WAITS_FOR_ITS_EVENT: cudaEventRecord(event, stream); return cudaEventSynchronize(event);
	case CAPTURE_ASKS_ITS_EVENT: cudaEventRecord(event, stream); return cudaEventQuery(event);
	case CAPTURE_WAITS_FOR_EARLIER_WORK: return cudaStreamWaitEvent(stream, event, 0);
	case CAPTURE_RELEASES: return cudaFree(data);
	case CAPTURE_COPIES_AT_ONCE: return cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost);
	case CAPTURE_SETS_AT_ONCE: return cudaMemset(data, 0, sizeof(float));
	default: return cudaGraphLaunch(graph, stream);
	}
}

/* Calls that CUDA forbids while a stream is captured invalidate the capture; other threads may make most of them. */
static void captures_are_spoiled(void **state)
{
	cudaEvent_t event;
	cudaGraph_t graph;
	cudaGraphExec_t run;
	begin();
	cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
	fault_launch(stream, FAULT_NONE, data, COUNT, out, BLOCKS);
	assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
	assert_int_equal(cudaGraphInstantiate(&run, graph, 0), cudaSuccess);
	cudaGraphDestroy(graph);
	for (int what = 0; what < FORBIDDEN_COUNT; what++) {
		cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
		cudaEventRecord(event, stream);
		cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
		assert_int_not_equal(do_forbidden((enum forbidden)what, event, run), cudaSuccess);
		assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
		cudaGetLastError();
		cudaEventDestroy(event);
	}
	emulated_graphs_left = 0;
	cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
	assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
	cudaGraphExec_t none;
	assert_int_equal(cudaGraphInstantiate(&none, graph, 0), cudaErrorMemoryAllocation);
	emulated_graphs_left = INT64_MAX;
	cudaGraphDestroy(graph);
	cudaGetLastError();
	cudaGraphExecDestroy(run);
	end();
}

/* A graph that refers to memory freed in the meantime, in a kernel or in a memset. */
static void graphs_know_what_is_gone(void **state)
{
	for (int fills = 0; fills < 2; fills++) {
		begin();
		fflush(NULL);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			cudaGraph_t graph;
			cudaGraphExec_t run;
			assert_true(freopen("/dev/null", "w", stderr) != NULL);
			cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
			if (fills)
				cudaMemsetAsync(out, 0, sizeof(float), stream);
			else
				fault_launch(stream, FAULT_NONE, data, COUNT, out, BLOCKS);
			cudaStreamEndCapture(stream, &graph);
			cudaGraphInstantiate(&run, graph, 0);
			cudaFree(out);
			cudaGraphLaunch(run, stream);
			cudaStreamSynchronize(stream);
			_exit(0);
		}
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		end();
	}
}

static void launches_have_limits(void **state)
{
	begin();
	assert_int_equal(fault_launch(stream, FAULT_NONE, data, COUNT, out, 0), cudaSuccess); /* no blocks: nothing happens */
	assert_int_equal(cudaFuncSetAttribute((const void *)data, cudaFuncAttributeMaxDynamicSharedMemorySize, 300 << 10),
			 cudaErrorInvalidValue);
	emulated_fail_after(0, cudaErrorECCUncorrectable);
	fault_launch(stream, FAULT_NONE, data, COUNT, out, 1);
	assert_int_equal(cudaStreamSynchronize(stream), cudaErrorECCUncorrectable);
	emulated_fail_after(-1, cudaSuccess);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_are_noticed),       cmocka_unit_test(launches_are_not_checked),
		cmocka_unit_test(streams_and_graphs),       cmocka_unit_test(captures_are_spoiled),
		cmocka_unit_test(graphs_know_what_is_gone), cmocka_unit_test(launches_have_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
