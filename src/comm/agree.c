/* Verifies that all ranks have the same text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "comm/transport.h"

/* What ranks compare first: the texts themselves are sent only if they differ. */
struct fingerprint {
	uint64_t hash;
	int64_t length;
	char host[64];
};

static bool same(const struct fingerprint *a, const struct fingerprint *b)
{
	return a->hash == b->hash && a->length == b->length;
}

/* The lowest of the ranks that have the most common text: if one rank of eight is wrong, that one is reported as different. */
static int32_t find_reference(const struct fingerprint *all, int32_t size)
{
	int32_t best = 0, most = 0;
	for (int32_t rank = 0; rank < size; rank++) {
		int32_t votes = 0;
		for (int32_t other = 0; other < size; other++)
			votes += same(&all[rank], &all[other]);
		if (votes > most) {
			most = votes;
			best = rank;
		}
	}
	return best;
}

/* The first lines in which two texts differ, cut to what fits into a message. */
static void first_difference(const char *a, const char *b, int lengths[2], const char *starts[2])
{
	size_t same_bytes = 0, line = 0;
	while (a[same_bytes] && a[same_bytes] == b[same_bytes]) {
		same_bytes++;
		if (a[same_bytes - 1] == '\n')
			line = same_bytes;
	}
	starts[0] = a + line;
	starts[1] = b + line;
	for (int i = 0; i < 2; i++) {
		starts[i] += strspn(starts[i], " \t");
		size_t length = strcspn(starts[i], "\n");
		lengths[i] = length > 400 ? 400 : (int)length;
	}
}

static enum status explain(struct comm *comm, const char *what, const char *text, const struct fingerprint *all,
			   int32_t reference, int32_t odd)
{
	char *texts[2] = {NULL, NULL};
	const int32_t ranks[2] = {reference, odd};
	const char *starts[2];
	int lengths[2];
	enum status status = OK;
	for (int i = 0; i < 2; i++) {
		TRY_GOTO(memory_new(&texts[i], all[ranks[i]].length + 1, 1, what), done);
		if (comm->place.rank == ranks[i])
			memcpy(texts[i], text, (size_t)all[ranks[i]].length);
		TRY_GOTO(comm_broadcast(comm, texts[i], (size_t)all[ranks[i]].length, ranks[i]), done);
	}
	first_difference(texts[0], texts[1], lengths, starts);
	status = error_set(ERR_STATE, "ranks disagree about %s: rank %d on %s has '%.*s', rank %d on %s has '%.*s'", what,
			   reference, all[reference].host, lengths[0], starts[0], odd, all[odd].host, lengths[1], starts[1]);
	error_hint("start all ranks with the same command, program, and files");
done:
	free(texts[0]);
	free(texts[1]);
	return status;
}

enum status comm_agree(struct comm *comm, const char *what, const char *text)
{
	struct fingerprint own = {.hash = hash64(text, strlen(text)), .length = (int64_t)strlen(text)}, *all;
	int32_t size = comm->place.size;
	if (size == 1)
		return OK;
	snprintf(own.host, sizeof own.host, "%s", comm->place.host);
	TRY(memory_new(&all, size, sizeof *all, what));
	enum status status = comm_gather(comm, &own, sizeof own, all);
	int32_t reference = status == OK ? find_reference(all, size) : 0, odd = 0;
	while (status == OK && odd < size && same(&all[odd], &all[reference]))
		odd++;
	if (status == OK && odd < size)
		status = explain(comm, what, text, all, reference, odd);
	free(all);
	return status;
}
