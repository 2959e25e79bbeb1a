/* Finds repeated hashes in a file by sorting one range of hash values after another. */
#include "data/copies.h"

#include <stdio.h>
#include <stdlib.h>
#include "base/memory.h"

#define READ_COUNT 8192

struct place {
	uint64_t hash;
	int64_t index;
};

static int by_hash_then_index(const void *left, const void *right)
{
	const struct place *a = left, *b = right;
	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* Collects the hashes, with their indices, that lie in part `range` of `ranges` equal parts of the value space. */
static enum status collect(FILE *file, const char *path, int64_t count, int64_t range, int64_t ranges, struct place **places,
			   int64_t *capacity, int64_t *out_count)
{
	uint64_t hashes[READ_COUNT];
	*out_count = 0;
	rewind(file);
	for (int64_t done = 0; done < count;) {
		size_t take = (size_t)(count - done < READ_COUNT ? count - done : READ_COUNT);
		if (fread(hashes, sizeof *hashes, take, file) != take)
			return error_set(ERR_RESOURCE, "'%s': cannot read it back", path);
		for (size_t i = 0; i < take; i++) {
			if ((int64_t)((hashes[i] >> 32) * (uint64_t)ranges >> 32) != range)
				continue;
			if (*out_count == *capacity)
				TRY(memory_grow(places, capacity, *out_count + 1, sizeof **places, "search for copies"));
			(*places)[(*out_count)++] = (struct place){.hash = hashes[i], .index = done + (int64_t)i};
		}
		done += (int64_t)take;
	}
	return OK;
}

static int64_t mark(const struct place *places, int64_t count, uint8_t *map)
{
	int64_t found = 0;
	for (int64_t i = 1; i < count; i++) {
		if (places[i].hash != places[i - 1].hash)
			continue;
		map[places[i].index / 8] |= (uint8_t)(1u << (places[i].index % 8));
		found++;
	}
	return found;
}

static enum status search(FILE *file, const char *path, int64_t count, int64_t memory, uint8_t *map, int64_t *out_found)
{
	struct place *places = NULL;
	int64_t capacity = 0, held, ranges = count * (int64_t)sizeof *places / memory + 1;
	enum status status = OK;
	for (int64_t range = 0; status == OK && range < ranges; range++) {
		status = collect(file, path, count, range, ranges, &places, &capacity, &held);
		if (status != OK || held == 0)
			continue;
		qsort(places, (size_t)held, sizeof *places, by_hash_then_index);
		*out_found += mark(places, held, map);
	}
	free(places);
	return status;
}

enum status copies_find(const char *path, int64_t count, int64_t memory, uint8_t **out_map, int64_t *out_found)
{
	uint8_t *map;
	*out_map = NULL;
	*out_found = 0;
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot read", path);
	enum status status = memory_new(&map, count / 8 + 1, 1, "map of copies");
	if (status == OK)
		status = search(file, path, count, memory, map, out_found);
	(void)fclose(file);
	if (status == OK)
		*out_map = map;
	else
		free(map);
	return status;
}
