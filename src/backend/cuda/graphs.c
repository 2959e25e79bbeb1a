#include "backend/cuda/graphs.h"

#include <stdlib.h>
#include <string.h>
#include "base/log.h"

/* Shapes that are remembered; the one that was not seen for longest makes room. A graph of BERT-large takes some MB. */
#define GRAPH_LIMIT 64

struct entry {
	struct work_key key;
	int64_t last;          /* when it was queued last; 0: free */
	bool refused;          /* it cannot be recorded */
	cudaGraphExec_t graph; /* NULL: seen once */
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

/* The graph may still run. */
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

/* The key's entry, or the oldest, made its own. */
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

/* False: nothing was recorded, for want of memory or because something cannot be; an error of the device itself comes back
 * with the next call. */
static bool record(struct cuda_state *state, struct entry *entry, void (*work)(void *context), void *context)
{
	cudaGraph_t graph = NULL;
	cudaError_t failed_before = state->failed;
	enum status refused_before = state->refused;
	/* Other threads go on with calls of their own. */
	cudaError_t error = cudaStreamBeginCapture(state->stream, cudaStreamCaptureModeThreadLocal);
	if (error == cudaSuccess) {
		work(context);
		error = cudaStreamEndCapture(state->stream, &graph);
	}
	/* Some of the work was refused. */
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
