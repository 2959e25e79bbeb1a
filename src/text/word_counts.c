#include "text/word_counts.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/hash.h"
#include "base/memory.h"

#define PARTS 64              /* of the shared table; a power of two */
#define LOCAL_SLOTS (1 << 16) /* 1.5 MiB: within a second-level cache */
#define LOCAL_TEXT_BYTES (1 << 20)
#define FIRST_SLOTS 256

/* Open addressing, linear probing, at most 5/8 full; the words' bytes lie one after the other in `text`. */
struct slot {
	uint64_t hash;
	int64_t count;  /* 0: free */
	uint64_t place; /* offset of the word in `text` << 13 | its bytes */
};
#define PLACE_BITS 13
_Static_assert(WORD_COUNTS_LONGEST < 1 << PLACE_BITS, "a word's size fits its slot");

struct table {
	struct slot *slots;
	int64_t slot_count, used; /* slot_count: a power of two */
	char *text;
	int64_t text_size, text_capacity;
};

/* Sorted words of one part in the file: uint16 size, int64 count, bytes of each. */
struct run {
	int64_t offset, end;
};
#define RECORD_HEAD (sizeof(uint16_t) + sizeof(int64_t))
#define RUN_BUFFER ((size_t)64 << 10)
_Static_assert(WORD_COUNTS_LONGEST + RECORD_HEAD < RUN_BUFFER, "a record fits a buffer");

struct word_counts {
	const struct spill_settings *spill; /* NULL: all in memory */
	int descriptor;                     /* -1: nothing has gone to a file */
	pthread_mutex_t file_lock;
	atomic_llong file_size;
	struct part {
		pthread_mutex_t lock;
		struct table table;
		struct run *runs;
		int64_t run_count, run_capacity;
	} parts[PARTS];
};

struct word_counter {
	struct word_counts *counts;
	struct table table;
};

static enum status table_create(struct table *table, int64_t slot_count)
{
	table->slot_count = slot_count;
	return memory_new(&table->slots, slot_count, sizeof *table->slots, "word counts");
}

static void table_release(struct table *table)
{
	free(table->slots);
	free(table->text);
}

/* The slot of a word, or the free one where it belongs. The top bits of the hash choose a part, the low ones
 * here. */
static struct slot *table_find(const struct table *table, uint64_t hash, const char *word, size_t size)
{
	uint64_t mask = (uint64_t)table->slot_count - 1;
	for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
		struct slot *slot = &table->slots[i];
		if (slot->count == 0)
			return slot;
		if (slot->hash == hash && (slot->place & ((1 << PLACE_BITS) - 1)) == size &&
		    memcmp(table->text + (slot->place >> PLACE_BITS), word, size) == 0)
			return slot;
	}
}

static bool table_is_full(const struct table *table)
{
	return table->used * 8 >= table->slot_count * 5;
}

static enum status table_double(struct table *table)
{
	struct table larger = *table;

	TRY(table_create(&larger, table->slot_count * 2));
	for (int64_t i = 0; i < table->slot_count; i++) {
		const struct slot *slot = &table->slots[i];
		if (slot->count == 0)
			continue;
		uint64_t mask = (uint64_t)larger.slot_count - 1, k = slot->hash & mask;
		while (larger.slots[k].count)
			k = (k + 1) & mask;
		larger.slots[k] = *slot;
	}
	free(table->slots);
	*table = larger;
	return OK;
}

static enum status table_add(struct table *table, uint64_t hash, const char *word, size_t size, int64_t count)
{
	struct slot *slot = table_find(table, hash, word, size);
	if (slot->count == 0) {
		TRY(memory_grow(&table->text, &table->text_capacity, table->text_size + (int64_t)size, 1,
		                "words"));
		memcpy(table->text + table->text_size, word, size);
		slot->hash = hash;
		slot->place = (uint64_t)table->text_size << PLACE_BITS | size;
		table->text_size += (int64_t)size;
		table->used++;
	}
	slot->count += count;
	return OK;
}

enum status word_counts_create(struct word_counts **out, const struct spill_settings *spill)
{
	struct word_counts *counts;

	*out = NULL;
	TRY(memory_new(&counts, 1, sizeof *counts, "word counts"));
	counts->spill = spill;
	counts->descriptor = -1;
	pthread_mutex_init(&counts->file_lock, NULL);
	for (int i = 0; i < PARTS; i++) {
		pthread_mutex_init(&counts->parts[i].lock, NULL);
		if (table_create(&counts->parts[i].table, FIRST_SLOTS) != OK) {
			word_counts_free(counts);
			return error_last()->status;
		}
	}
	*out = counts;
	return OK;
}

void word_counts_free(struct word_counts *counts)
{
	if (!counts)
		return;
	for (int i = 0; i < PARTS; i++) {
		pthread_mutex_destroy(&counts->parts[i].lock);
		table_release(&counts->parts[i].table);
		free(counts->parts[i].runs);
	}
	pthread_mutex_destroy(&counts->file_lock);
	if (counts->descriptor >= 0)
		close(counts->descriptor);
	free(counts);
}

int64_t word_counts_spilled(const struct word_counts *counts)
{
	return atomic_load(&counts->file_size);
}

/* Words of one table, to be sorted by their bytes. */
struct sorted {
	const char *word;
	int64_t count;
	uint16_t size;
};

static int compare_words(const char *a, size_t a_size, const char *b, size_t b_size)
{
	int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
	return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare_sorted(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	return compare_words(x->word, x->size, y->word, y->size);
}

static enum status open_file(struct word_counts *counts)
{
	enum status status = OK;
	pthread_mutex_lock(&counts->file_lock);
	if (counts->descriptor < 0)
		status = spill_file(counts->spill, &counts->descriptor);
	pthread_mutex_unlock(&counts->file_lock);
	return status;
}

static enum status write_at(int descriptor, const char *bytes, size_t size, int64_t offset)
{
	while (size > 0) {
		ssize_t wrote = pwrite(descriptor, bytes, size, (off_t)offset);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0) {
			enum status status = error_set_errno(ERR_RESOURCE, "word counts: cannot write the temporary file");
			error_hint("make room, or set TMPDIR to a folder on a larger disk");
			return status;
		}
		bytes += wrote;
		size -= (size_t)wrote;
		offset += wrote;
	}
	return OK;
}

/* Sorts the table of a part into the file and empties it. The part is locked, or nobody else counts. */
static enum status spill_part(struct word_counts *counts, struct part *part)
{
	struct table *table = &part->table;
	struct sorted *words = NULL;
	char *bytes = NULL;
	int64_t count = 0;
	size_t size = 0;
	enum status status;

	TRY(open_file(counts));
	TRY_GOTO(memory_new(&words, table->used, sizeof *words, "word counts"), done);
	for (int64_t i = 0; i < table->slot_count; i++) {
		const struct slot *slot = &table->slots[i];
		if (slot->count == 0)
			continue;
		words[count] = (struct sorted){table->text + (slot->place >> PLACE_BITS), slot->count,
		                               (uint16_t)(slot->place & ((1 << PLACE_BITS) - 1))};
		size += RECORD_HEAD + words[count++].size;
	}
	qsort(words, (size_t)count, sizeof *words, compare_sorted);
	TRY_GOTO(memory_new(&bytes, (int64_t)size, 1, "word counts"), done);
	char *at = bytes;
	for (int64_t i = 0; i < count; i++) {
		memcpy(at, &words[i].size, sizeof(uint16_t));
		memcpy(at + sizeof(uint16_t), &words[i].count, sizeof(int64_t));
		memcpy(at + RECORD_HEAD, words[i].word, words[i].size);
		at += RECORD_HEAD + words[i].size;
	}
	TRY_GOTO(memory_grow(&part->runs, &part->run_capacity, part->run_count + 1, sizeof *part->runs, "word counts"), done);
	struct run run = {.offset = atomic_fetch_add(&counts->file_size, (long long)size)};
	run.end = run.offset + (int64_t)size;
	TRY_GOTO(write_at(counts->descriptor, bytes, size, run.offset), done);
	part->runs[part->run_count++] = run;
	table_release(table);
	*table = (struct table){0};
	status = table_create(table, FIRST_SLOTS);
done:
	free(words);
	free(bytes);
	return status;
}

static bool outgrows(const struct word_counts *counts, const struct table *table)
{
	/* Doubling holds the old slots and the new ones at once. */
	return counts->spill && counts->spill->memory_limit > 0 &&
	       (3 * table->slot_count * (int64_t)sizeof(struct slot) + table->text_capacity) >
	               counts->spill->memory_limit / PARTS;
}

enum status word_counter_create(struct word_counter **out, struct word_counts *counts)
{
	struct word_counter *counter;

	*out = NULL;
	TRY(memory_new(&counter, 1, sizeof *counter, "word counts"));
	counter->counts = counts;
	enum status status = table_create(&counter->table, LOCAL_SLOTS);
	if (status != OK) {
		word_counter_free(counter);
		return status;
	}
	*out = counter;
	return OK;
}

void word_counter_free(struct word_counter *counter)
{
	if (!counter)
		return;
	table_release(&counter->table);
	free(counter);
}

enum status word_counter_add(struct word_counter *counter, const char *word, size_t size)
{
	BUG_IF(size == 0 || size > WORD_COUNTS_LONGEST);
	if (table_is_full(&counter->table) || counter->table.text_size > LOCAL_TEXT_BYTES)
		TRY(word_counter_flush(counter));
	return table_add(&counter->table, hash64(word, size), word, size, 1);
}

enum status word_counter_flush(struct word_counter *counter)
{
	struct table *local = &counter->table;
	enum status status = OK;

	for (int64_t i = 0; i < local->slot_count && status == OK; i++) {
		struct slot *slot = &local->slots[i];
		if (slot->count == 0)
			continue;
		struct part *part = &counter->counts->parts[slot->hash / (UINT64_MAX / PARTS + 1)];
		pthread_mutex_lock(&part->lock);
		if (table_is_full(&part->table))
			status = outgrows(counter->counts, &part->table) ? spill_part(counter->counts, part)
			                                                 : table_double(&part->table);
		if (status == OK)
			status =
			        table_add(&part->table, slot->hash, local->text + (slot->place >> PLACE_BITS),
			                  slot->place & ((1 << PLACE_BITS) - 1), slot->count);
		pthread_mutex_unlock(&part->lock);
	}
	memset(local->slots, 0, (size_t)local->slot_count * sizeof *local->slots);
	local->used = 0;
	local->text_size = 0;
	return status;
}

/* One run being read. */
struct run_reader {
	int64_t offset, end; /* of what is not in the buffer yet */
	char *buffer;
	size_t begin, filled;
	bool at_end;
	const char *word; /* the current record */
	uint16_t size;
	int64_t count;
};

static enum status next_record(struct run_reader *reader, int descriptor)
{
	if (reader->begin == reader->filled && reader->offset == reader->end) {
		reader->at_end = true;
		return OK;
	}
	/* A whole record in the buffer: its longest is asked for. */
	if (reader->filled - reader->begin < RECORD_HEAD + WORD_COUNTS_LONGEST && reader->offset < reader->end) {
		memmove(reader->buffer, reader->buffer + reader->begin, reader->filled - reader->begin);
		reader->filled -= reader->begin;
		reader->begin = 0;
		while (reader->filled < RUN_BUFFER && reader->offset < reader->end) {
			size_t want = RUN_BUFFER - reader->filled;
			if ((int64_t)want > reader->end - reader->offset)
				want = (size_t)(reader->end - reader->offset);
			ssize_t got = pread(descriptor, reader->buffer + reader->filled, want, (off_t)reader->offset);
			if (got < 0 && errno == EINTR)
				continue;
			if (got <= 0)
				return error_set_errno(ERR_RESOURCE, "word counts: cannot read the temporary file back");
			reader->filled += (size_t)got;
			reader->offset += got;
		}
	}
	const char *at = reader->buffer + reader->begin;
	memcpy(&reader->size, at, sizeof reader->size);
	memcpy(&reader->count, at + sizeof reader->size, sizeof reader->count);
	reader->word = at + RECORD_HEAD;
	reader->begin += RECORD_HEAD + reader->size;
	BUG_IF(reader->begin > reader->filled);
	return OK;
}

/* Visits the words of all runs of a part, each with the sum of its counts. */
static enum status merge_runs(struct word_counts *counts, const struct part *part, struct run_reader *readers,
                              enum status (*visit)(void *context, const char *word, size_t size, int64_t count),
                              void *context)
{
	char word[WORD_COUNTS_LONGEST];
	for (int64_t i = 0; i < part->run_count; i++) {
		readers[i].offset = part->runs[i].offset;
		readers[i].end = part->runs[i].end;
		TRY(memory_new(&readers[i].buffer, (int64_t)RUN_BUFFER, 1, "word counts"));
		TRY(next_record(&readers[i], counts->descriptor));
	}
	for (;;) {
		const struct run_reader *first = NULL;
		for (int64_t i = 0; i < part->run_count; i++) {
			const struct run_reader *reader = &readers[i];
			if (!reader->at_end &&
			    (!first || compare_words(reader->word, reader->size, first->word, first->size) < 0))
				first = reader;
		}
		if (!first)
			return OK;
		size_t size = first->size;
		int64_t sum = 0;
		memcpy(word, first->word, size);
		for (int64_t i = 0; i < part->run_count; i++) {
			struct run_reader *reader = &readers[i];
			if (reader->at_end || compare_words(reader->word, reader->size, word, size) != 0)
				continue;
			sum += reader->count;
			TRY(next_record(reader, counts->descriptor));
		}
		TRY(visit(context, word, size, sum));
	}
}

static enum status visit_runs(struct word_counts *counts, struct part *part,
                              enum status (*visit)(void *context, const char *word, size_t size, int64_t count),
                              void *context)
{
	struct run_reader *readers;
	if (part->table.used > 0)
		TRY(spill_part(counts, part));
	TRY(memory_new(&readers, part->run_count, sizeof *readers, "word counts"));
	enum status status = merge_runs(counts, part, readers, visit, context);
	for (int64_t i = 0; i < part->run_count; i++)
		free(readers[i].buffer);
	free(readers);
	return status;
}

enum status word_counts_visit(struct word_counts *counts,
                              enum status (*visit)(void *context, const char *word, size_t size, int64_t count),
                              void *context)
{
	for (int k = 0; k < PARTS; k++) {
		struct part *part = &counts->parts[k];
		const struct table *table = &part->table;
		if (part->run_count > 0) {
			TRY(visit_runs(counts, part, visit, context));
			continue;
		}
		for (int64_t i = 0; i < table->slot_count; i++) {
			const struct slot *slot = &table->slots[i];
			if (slot->count)
				TRY(visit(context, table->text + (slot->place >> PLACE_BITS),
				          slot->place & ((1 << PLACE_BITS) - 1), slot->count));
		}
	}
	return OK;
}

static enum status count_one(void *context, const char *word, size_t size, int64_t count)
{
	(void)word, (void)size, (void)count;
	++*(int64_t *)context;
	return OK;
}

enum status word_counts_distinct(struct word_counts *counts, int64_t *out)
{
	*out = 0;
	return word_counts_visit(counts, count_one, out);
}
