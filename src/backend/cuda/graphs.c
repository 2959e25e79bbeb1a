#include "backend/cuda/graphs.h"

#include <stdlib.h>
#include <string.h>
#include "base/log.h"

/* Shapes that are remembered; the least recently used one makes room. A graph of BERT-large takes a few MB. */
#define GRAPH_LIMIT 64

struct entry {
	struct work_key key;
	int64_t last;          /* time of its last use; 0: entry is free */
	bool refused;          /* recording failed */
	cudaGraphExec_t graph; /* NULL: not recorded yet */
};

struct graphs {
	struct entry entries[GRAPH_LIMIT];
	int64_t now, recorded, launched;
	bool off;
};

enum status graphs_open(struct cuda_state *state)
{
	const char *wanted = getenv("BERTC_GRAPHS");
	TRY(memory_new(&state->graphs, 1, sizeof(*state->graphs), "recorded graphs"));
	state->graphs->off = wanted && strcmp(wanted, "0") == 0;
	return OK;
}

/* Waits first, because the graph may still be running. */
static void drop(struct cuda_state *state, struct entry *entry)
{
	if (entry->graph) {
		cuda_check(state, cudaStreamSynchronize(state->stream), "cudaStreamSynchronize");
		cuda_check(state, cudaGraphExecDestroy(entry->graph), "cudaGraphExecDestroy");
	}
	*entry = (struct entry){.graph = NULL};
}

void graphs_forget(struct cuda_state *state)
{
	for (int i = 0; state->graphs && i < GRAPH_LIMIT; i++)
		drop(state, &state->graphs->entries[i]);
}

void graphs_close(struct cuda_state *state)
{
	graphs_forget(state);
	free(state->graphs);
	state->graphs = NULL;
}

void graphs_counts(const struct cuda_state *state, int64_t *out_recorded, int64_t *out_launched)
{
	*out_recorded = state->graphs->recorded;
	*out_launched = state->graphs->launched;
}

static bool same_key(const struct work_key *a, const struct work_key *b)
{
	return a->owner == b->owner && a->part == b->part && a->tokens == b->tokens && a->sequences == b->sequences &&
	       a->examples == b->examples && a->longest == b->longest && memcmp(a->labels, b->labels, sizeof(a->labels)) == 0;
}

/* Returns the key's entry, or the least recently used one, reset for this key. */
static struct entry *find(struct cuda_state *state, const struct work_key *key, bool *is_new)
{
	struct entry *entries = state->graphs->entries, *oldest = &entries[0];
	*is_new = false;
	for (int i = 0; i < GRAPH_LIMIT; i++) {
		if (entries[i].last > 0 && same_key(&entries[i].key, key))
			return &entries[i];
		if (entries[i].last < oldest->last)
			oldest = &entries[i];
	}
	drop(state, oldest);
	oldest->key = *key;
	*is_new = true;
	return oldest;
}

/* Returns false if nothing was recorded, because memory ran out or something cannot be recorded; an error of the device itself
 * will recur at the next call. */
static bool record(struct cuda_state *state, struct entry *entry, void (*work)(void *context), void *context)
{
	cudaGraph_t graph = NULL;
	cudaError_t failed_before = state->failed;
	enum status refused_before = state->refused;
	/* Other threads may make CUDA calls of their own meanwhile. */
	cudaError_t error = cudaStreamBeginCapture(state->stream, cudaStreamCaptureModeThreadLocal);
	if (error == cudaSuccess) {
		work(context);
		error = cudaStreamEndCapture(state->stream, &graph);
	}
	/* Part of the work failed. */
	if (error == cudaSuccess && state->failed != failed_before)
		error = state->failed;
	if (error == cudaSuccess && state->refused != refused_before)
		error = cudaErrorStreamCaptureUnsupported;
	if (error == cudaSuccess)
		error = cudaGraphInstantiate(&entry->graph, graph, 0);
	if (graph)
		cuda_check(state, cudaGraphDestroy(graph), "cudaGraphDestroy");
	if (error == cudaSuccess) {
		state->graphs->recorded++;
		return true;
	}
	log_detail("work is not recorded as a graph: %s", cudaGetErrorString(error));
	cudaGetLastError();
	state->failed = failed_before;
	state->refused = refused_before;
	entry->graph = NULL;
	return false;
}

void graphs_queue(struct cuda_state *state, const struct work_key *key, void (*work)(void *context), void *context)
{
	struct graphs *graphs = state->graphs;
	if (graphs->off) {
		work(context);
		return;
	}
	bool is_new;
	struct entry *entry = find(state, key, &is_new);
	entry->last = ++graphs->now;
	if (!is_new && !entry->graph && !entry->refused)
		entry->refused = !record(state, entry, work, context);
	if (entry->graph) {
		cuda_check(state, cudaGraphLaunch(entry->graph, state->stream), "cudaGraphLaunch");
		graphs->launched++;
	} else {
		work(context);
	}
}
