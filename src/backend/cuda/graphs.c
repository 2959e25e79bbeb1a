/* Records work as CUDA graphs by shape, keeps the most recently used ones, and replays them. */
#include "backend/cuda/graphs.h"

#include <stdlib.h>
#include <string.h>
#include "base/log.h"

/* Shapes that are remembered; the least recently used one makes room. A graph of BERT-large takes a few MB. */
#define GRAPH_LIMIT 64

/* Operations, and what to call after them (NULL: nothing). */
struct piece {
	cudaGraphExec_t graph;
	void (*hook)(void *context, int32_t layer);
	void *context;
	int32_t layer;
};

struct entry {
	struct work_key key;
	int64_t last; /* time of its last use; 0: entry is free */
	bool refused; /* recording failed */
	struct piece *pieces;
	int64_t count, capacity; /* count 0: not recorded yet */
};

struct graphs {
	struct entry entries[GRAPH_LIMIT];
	struct entry *recording; /* NULL: nothing is being recorded */
	cudaError_t error;       /* the recording's first */
	cudaError_t lost;        /* the error because of which a part of the work was carried out instead of being recorded */
	int64_t now, recorded, launched;
	bool off;
};

enum status graphs_open(struct cuda_state *state)
{
	const char *wanted = getenv("BERTC_GRAPHS");
	TRY(memory_new(&state->graphs, 1, sizeof *state->graphs, "recorded graphs"));
	state->graphs->off = wanted && strcmp(wanted, "0") == 0;
	return OK;
}

/* Waits first, because the graph may still be running. */
static void drop(struct cuda_state *state, struct entry *entry)
{
	if (entry->count > 0)
		cuda_check(state, cudaStreamSynchronize(state->stream), "cudaStreamSynchronize");
	for (int64_t i = 0; i < entry->count; i++)
		if (entry->pieces[i].graph)
			cuda_check(state, cudaGraphExecDestroy(entry->pieces[i].graph), "cudaGraphExecDestroy");
	free(entry->pieces);
	*entry = (struct entry){.pieces = NULL};
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
	       a->examples == b->examples && a->longest == b->longest && a->hooks == b->hooks &&
	       memcmp(a->labels, b->labels, sizeof a->labels) == 0;
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

/* Other threads may make CUDA calls of their own meanwhile. */
static cudaError_t begin_piece(struct cuda_state *state)
{
	return cudaStreamBeginCapture(state->stream, cudaStreamCaptureModeThreadLocal);
}

/* Ends the capture under way, and appends what it has captured, followed by a call of `hook`. */
static void end_piece(struct cuda_state *state, void (*hook)(void *context, int32_t layer), void *context, int32_t layer)
{
	struct graphs *graphs = state->graphs;
	struct entry *entry = graphs->recording;
	struct piece piece = {.hook = hook, .context = context, .layer = layer};
	cudaGraph_t graph = NULL;
	cudaError_t error = cudaStreamEndCapture(state->stream, &graph);
	if (error == cudaSuccess &&
	    memory_grow(&entry->pieces, &entry->capacity, entry->count + 1, sizeof *entry->pieces, "recorded graphs") != OK)
		error = cudaErrorMemoryAllocation;
	if (error == cudaSuccess && graphs->error == cudaSuccess) {
		error = cudaGraphInstantiate(&piece.graph, graph, 0);
		if (error == cudaSuccess)
			entry->pieces[entry->count++] = piece;
	}
	if (graph)
		cuda_check(state, cudaGraphDestroy(graph), "cudaGraphDestroy");
	if (graphs->error == cudaSuccess)
		graphs->error = error;
}

void graphs_hook(struct cuda_state *state, void (*call)(void *context, int32_t layer), void *context, int32_t layer)
{
	struct graphs *graphs = state->graphs;
	if (!graphs->recording || graphs->recording->key.hooks == 0) {
		call(context, layer);
		return;
	}
	end_piece(state, call, context, layer);
	/* After an error, too: what follows must not be carried out now, since all of it will be again. */
	cudaError_t error = begin_piece(state);
	if (error != cudaSuccess)
		graphs->lost = error;
}

/* Returns false if nothing was recorded, because memory ran out or something cannot be recorded; an error of the device itself
 * will recur at the next call. Nothing is carried out. */
static bool record(struct cuda_state *state, struct entry *entry, void (*work)(void *context), void *context)
{
	struct graphs *graphs = state->graphs;
	cudaError_t failed_before = state->failed;
	enum status refused_before = state->refused;
	graphs->error = begin_piece(state);
	if (graphs->error == cudaSuccess) {
		graphs->recording = entry;
		work(context);
		end_piece(state, NULL, NULL, 0);
		graphs->recording = NULL;
	}
	/* Part of the work failed. */
	if (graphs->error == cudaSuccess && state->failed != failed_before)
		graphs->error = state->failed;
	if (graphs->error == cudaSuccess && state->refused != refused_before)
		graphs->error = cudaErrorStreamCaptureUnsupported;
	if (graphs->error == cudaSuccess) {
		graphs->recorded++;
		return true;
	}
	log_detail("work is not recorded as a graph: %s", cudaGetErrorString(graphs->error));
	cudaGetLastError();
	state->failed = failed_before;
	state->refused = refused_before;
	cuda_check(state, graphs->lost, "cudaStreamBeginCapture");
	struct work_key key = entry->key;
	int64_t last = entry->last;
	drop(state, entry);
	entry->key = key;
	entry->last = last;
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
	if (!is_new && entry->count == 0 && !entry->refused)
		entry->refused = !record(state, entry, work, context);
	if (entry->count == 0) {
		work(context);
		return;
	}
	for (int64_t i = 0; i < entry->count; i++) {
		const struct piece *piece = &entry->pieces[i];
		cuda_check(state, cudaGraphLaunch(piece->graph, state->stream), "cudaGraphLaunch");
		if (piece->hook)
			piece->hook(piece->context, piece->layer);
	}
	graphs->launched++;
}
