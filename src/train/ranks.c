/* Compares the ranks' weights by hashes, and lets the communication use the device. */
#include "train/ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

/* ---- The device ---- */

static enum dtype dtype_of(enum comm_type type)
{
	return type == COMM_F64 ? DTYPE_F64 : type == COMM_F32 ? DTYPE_F32 : type == COMM_BF16 ? DTYPE_BF16 : DTYPE_F16;
}

static enum status convert(void *context, void *stream, void *out, enum comm_type out_type, const void *in,
			   enum comm_type in_type, int64_t count)
{
	struct backend *be = context;
	return be->functions->convert(be, stream, out, dtype_of(out_type), in, dtype_of(in_type), count);
}

enum status ranks_use_device(struct comm *comm, struct backend *be)
{
	if (ranks_count(comm) == 1 || !be->functions->queue)
		return OK;
	return comm_use_device(comm, &(struct comm_device){
					     .stream = be->functions->queue(be),
					     .convert = convert,
					     .context = be,
					     .explain = be->functions->explain,
				     });
}

/* ---- Weights ---- */

/* Bytes hashed at a time. */
#define PIECE ((size_t)4 << 20)

static void hash_range(struct backend *be, const void *data, size_t bytes, unsigned char *piece, uint64_t *hash)
{
	for (size_t done = 0; done < bytes; done += PIECE) {
		size_t part = bytes - done < PIECE ? bytes - done : PIECE;
		be->functions->to_host(be, piece, (const char *)data + done, part);
		*hash = hash64_combine(*hash, hash64(piece, part));
	}
}

/* Of the masters, and of the copies that are gathered in their place (bucket.narrow). */
static enum status hash_weights(const struct model *model, uint64_t *out)
{
	struct backend *be = model->backend;
	unsigned char *piece;
	TRY(memory_new(&piece, 1, PIECE, "hash of the weights"));
	*out = 0;
	hash_range(be, model->slab.data, (size_t)model->slab_count * dtype_bytes(model->slab.dtype), piece, out);
	for (int64_t i = 0; i < model->weight_count && model->mirror.data; i++) {
		const struct weight *weight = model->weights[i];
		if (weight->use == WEIGHT_LINEAR)
			hash_range(be, weight->copy,
				   (size_t)(weight->master.rows * weight->master.columns) * dtype_bytes(be->dtype), piece, out);
	}
	free(piece);
	return OK;
}

/* The most common hash; in a tie, the lowest rank's. *count: how many ranks have it. */
static uint64_t most_common(const uint64_t *hashes, int32_t ranks, int32_t *count)
{
	uint64_t best = 0;
	*count = 0;
	for (int32_t i = 0; i < ranks; i++) {
		int32_t same = 0;
		for (int32_t k = 0; k < ranks; k++)
			same += hashes[k] == hashes[i];
		if (same > *count) {
			*count = same;
			best = hashes[i];
		}
	}
	return best;
}

static enum status judge_hashes(const uint64_t *hashes, const char (*hosts)[64], int32_t ranks, int64_t step)
{
	int32_t count;
	uint64_t common = most_common(hashes, ranks, &count);
	if (count == ranks)
		return OK;
	char named[512];
	int used = 0, listed = 0;
	for (int32_t rank = 0; rank < ranks; rank++) {
		if (hashes[rank] == common)
			continue;
		int left = (int)sizeof named - used;
		int wrote = snprintf(named + used, (size_t)left, "%srank %d (%s)", listed++ ? ", " : "", rank, hosts[rank]);
		used += wrote < left ? wrote : 0;
	}
	return error_hinted(
		error_set(ERR_PEER, "step %lld: the weights of %s differ from those of the %d other%s%s", (long long)step, named,
			  count, count == 1 ? "" : "s", 2 * count > ranks ? "" : " (either may be the wrong ones)"),
		"faulty memory or a faulty connection: the last checkpoint is intact; test that machine, then run the same "
		"command again");
}

enum status ranks_agree_on_weights(struct comm *comm, const struct model *model)
{
	uint64_t hash = 0;
	char text[32];
	if (ranks_count(comm) == 1)
		return OK;
	TRY(hash_weights(model, &hash));
	snprintf(text, sizeof text, "hash %016" PRIx64 "\n", hash);
	return comm_agree(comm, "the weights to begin with", text);
}

enum status ranks_compare_weights(struct comm *comm, const struct model *model, int64_t step)
{
	int32_t ranks = ranks_count(comm);
	if (ranks == 1)
		return OK;
	uint64_t own = 0, *hashes = NULL;
	char(*hosts)[64] = NULL;
	enum status status;
	TRY_GOTO(memory_new(&hashes, ranks, sizeof *hashes, "hashes of the weights"), done);
	TRY_GOTO(memory_new(&hosts, ranks, sizeof *hosts, "hashes of the weights"), done);
	TRY_GOTO(hash_weights(model, &own), done);
	TRY_GOTO(comm_gather(comm, &own, sizeof own, hashes), done);
	TRY_GOTO(comm_gather(comm, comm_place(comm)->host, sizeof *hosts, hosts), done);
	status = judge_hashes(hashes, (const char(*)[64])hosts, ranks, step);
done:
	free(hashes);
	free(hosts);
	return status;
}
