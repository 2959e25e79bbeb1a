/* Counts words in tables that are spilled to sorted runs when memory is short, and merges the runs. */
#include "text/vocabulary/word_counts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buffer.h"
#include "base/hash.h"
#include "base/memory.h"
#include "text/vocabulary/count_table.h"

#define PARTS 64              /* of the shared table; a power of two */
#define LOCAL_SLOTS (1 << 16) /* 1.5 MiB, which fits a second-level cache */
#define LOCAL_TEXT_BYTES (1 << 20)
#define FIRST_SLOTS 256

/* Sorted words of one part in the file, each as uint16 size, int64 count, bytes. A table is written as a run of level 0; as soon
 * as a part has FAN_IN runs of one level, they are merged into one of the next level, so that a part has few runs and a frequent
 * word occurs in few of them. */
struct run {
	int64_t offset, end;
	int level; /* never higher than that of the previous run */
};
#define FAN_IN 16
#define RECORD_HEAD (sizeof(uint16_t) + sizeof(int64_t))
_Static_assert(WORD_COUNTS_LONGEST + RECORD_HEAD < SPILL_BUFFER, "a record fits a buffer");
_Static_assert(WORD_COUNTS_LONGEST <= COUNT_TABLE_LONGEST, "a word fits a table");

struct word_counts {
	const struct spill_settings *spill; /* NULL: all in memory */
	int descriptor;                     /* -1: nothing has been written to a file */
	pthread_mutex_t file_lock;
	atomic_llong file_size;
	struct part {
		pthread_mutex_t lock;
		struct count_table table;
		struct run *runs;
		int64_t run_count, run_capacity;
	} parts[PARTS];
};

struct word_counter {
	struct word_counts *counts;
	struct count_table table;
};

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
		if (count_table_create(&counts->parts[i].table, FIRST_SLOTS) != OK) {
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
		count_table_release(&counts->parts[i].table);
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

/* Writing words to the file */

static enum status open_file(struct word_counts *counts)
{
	enum status status = OK;
	pthread_mutex_lock(&counts->file_lock);
	if (counts->descriptor < 0)
		status = spill_file(counts->spill, &counts->descriptor);
	pthread_mutex_unlock(&counts->file_lock);
	return status;
}

struct run_writer {
	struct word_counts *counts;
	struct run run; /* run.end: end of what has been written so far */
	struct buffer buffer;
};

/* `room`: bytes to reserve, at least as many as will be written. */
static void run_begin(struct run_writer *writer, struct word_counts *counts, int64_t room, int level)
{
	int64_t offset = atomic_fetch_add(&counts->file_size, (long long)room);
	*writer = (struct run_writer){.counts = counts, .run = {offset, offset, level}};
}

static enum status run_flush(struct run_writer *writer)
{
	TRY(buffer_status(&writer->buffer));
	TRY(spill_write(writer->counts->descriptor, writer->buffer.data, writer->buffer.size, writer->run.end));
	writer->run.end += (int64_t)writer->buffer.size;
	buffer_clear(&writer->buffer);
	return OK;
}

static enum status run_add(void *context, const char *word, size_t size, int64_t count)
{
	struct run_writer *writer = context;
	uint16_t short_size = (uint16_t)size;
	buffer_append(&writer->buffer, &short_size, sizeof short_size);
	buffer_append(&writer->buffer, &count, sizeof count);
	buffer_append(&writer->buffer, word, size);
	return writer->buffer.size >= SPILL_BUFFER ? run_flush(writer) : OK;
}

/* Finishes the run and makes it the last one of the part. */
static enum status run_end(struct run_writer *writer, struct part *part)
{
	TRY(run_flush(writer));
	TRY(memory_grow(&part->runs, &part->run_capacity, part->run_count + 1, sizeof *part->runs, "word counts"));
	part->runs[part->run_count++] = writer->run;
	return OK;
}

/* A word of a table, for sorting by bytes. */
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

/* Writes the table of a part to the file, sorted, and empties it. The part must be locked, or no other thread counting. */
static enum status spill_table(struct word_counts *counts, struct part *part)
{
	struct count_table *table = &part->table;
	struct run_writer writer = {0};
	struct sorted *words = NULL;
	int64_t count = 0, bytes = 0;
	enum status status;

	TRY(open_file(counts));
	TRY(memory_new(&words, table->used, sizeof *words, "word counts"));
	for (int64_t i = 0; i < table->slot_count; i++) {
		const struct count_slot *slot = &table->slots[i];
		if (slot->count == 0)
			continue;
		words[count] = (struct sorted){count_table_string(table, slot), slot->count, (uint16_t)count_slot_size(slot)};
		bytes += (int64_t)RECORD_HEAD + words[count++].size;
	}
	qsort(words, (size_t)count, sizeof *words, compare_sorted);
	run_begin(&writer, counts, bytes, 0);
	for (int64_t i = 0; i < count; i++)
		TRY_GOTO(run_add(&writer, words[i].word, words[i].size, words[i].count), done);
	TRY_GOTO(run_end(&writer, part), done);
	count_table_release(table);
	status = count_table_create(table, FIRST_SLOTS);
done:
	buffer_release(&writer.buffer);
	free(words);
	return status;
}

/* Reading words from the file */

/* A run being read. */
struct run_reader {
	struct spill_reader file;
	const char *word; /* the current record; NULL: at the end */
	uint16_t size;
	int64_t count;
};

static enum status next_record(struct run_reader *reader)
{
	const char *at;
	size_t size;

	if (reader->word)
		spill_reader_skip(&reader->file, RECORD_HEAD + reader->size);
	TRY(spill_reader_see(&reader->file, RECORD_HEAD + WORD_COUNTS_LONGEST, &at, &size));
	if (size == 0) {
		reader->word = NULL;
		return OK;
	}
	memcpy(&reader->size, at, sizeof reader->size);
	memcpy(&reader->count, at + sizeof reader->size, sizeof reader->count);
	reader->word = at + RECORD_HEAD;
	BUG_IF(RECORD_HEAD + reader->size > size);
	return OK;
}

static bool comes_before(const struct run_reader *a, const struct run_reader *b)
{
	return compare_words(a->word, a->size, b->word, b->size) < 0;
}

/* Moves heap[at] down to where it belongs: no reader's word may come before that of its parent. */
static void heap_sink(struct run_reader **heap, int64_t count, int64_t at)
{
	struct run_reader *reader = heap[at];
	for (int64_t child; (child = 2 * at + 1) < count; at = child) {
		child += child + 1 < count && comes_before(heap[child + 1], heap[child]);
		if (!comes_before(heap[child], reader))
			break;
		heap[at] = heap[child];
	}
	heap[at] = reader;
}

/* Visits the words of the heap's readers in order, each with the sum of its counts. */
static enum status merge_readers(struct run_reader **heap, int64_t count, word_counts_visitor *visit, void *context)
{
	char word[WORD_COUNTS_LONGEST];

	for (int64_t i = count / 2; i-- > 0;)
		heap_sink(heap, count, i);
	while (count > 0) {
		size_t size = heap[0]->size;
		int64_t sum = 0;
		memcpy(word, heap[0]->word, size);
		while (count > 0 && compare_words(heap[0]->word, heap[0]->size, word, size) == 0) {
			sum += heap[0]->count;
			TRY(next_record(heap[0]));
			if (!heap[0]->word)
				heap[0] = heap[--count];
			if (count > 0)
				heap_sink(heap, count, 0);
		}
		TRY(visit(context, word, size, sum));
	}
	return OK;
}

static enum status visit_runs(struct word_counts *counts, const struct run *runs, int64_t run_count, word_counts_visitor *visit,
			      void *context)
{
	struct run_reader *readers = NULL, **heap = NULL;
	int64_t count = 0;
	enum status status;

	TRY_GOTO(memory_new(&readers, run_count, sizeof *readers, "word counts"), done);
	TRY_GOTO(memory_new(&heap, run_count, sizeof *heap, "word counts"), done);
	for (int64_t i = 0; i < run_count; i++) {
		TRY_GOTO(spill_reader_open(&readers[i].file, counts->descriptor, runs[i].offset, runs[i].end), done);
		TRY_GOTO(next_record(&readers[i]), done);
		if (readers[i].word)
			heap[count++] = &readers[i];
	}
	status = merge_readers(heap, count, visit, context);
done:
	for (int64_t i = 0; readers && i < run_count; i++)
		spill_reader_close(&readers[i].file);
	free(readers);
	free(heap);
	return status;
}

/* Merges the last `count` runs of a part into one. */
static enum status merge_last_runs(struct word_counts *counts, struct part *part, int64_t count)
{
	struct run *runs = part->runs + part->run_count - count;
	struct run_writer writer;
	int64_t room = 0;
	enum status status;

	for (int64_t i = 0; i < count; i++)
		room += runs[i].end - runs[i].offset;
	run_begin(&writer, counts, room, runs[0].level + 1);
	TRY_GOTO(visit_runs(counts, runs, count, run_add, &writer), done);
	for (int64_t i = 0; i < count; i++)
		spill_forget(counts->descriptor, runs[i].offset, runs[i].end);
	part->run_count -= count;
	status = run_end(&writer, part);
done:
	buffer_release(&writer.buffer);
	return status;
}

static enum status spill_part(struct word_counts *counts, struct part *part)
{
	TRY(spill_table(counts, part));
	while (part->run_count >= FAN_IN && part->runs[part->run_count - FAN_IN].level == part->runs[part->run_count - 1].level)
		TRY(merge_last_runs(counts, part, FAN_IN));
	return OK;
}

/* Counting */

static bool outgrows(const struct word_counts *counts, const struct count_table *table)
{
	/* While a table is doubled, the old and new slots are in memory together. */
	return counts->spill && counts->spill->memory_limit > 0 &&
	       (3 * table->slot_count * (int64_t)sizeof(struct count_slot) + table->text_capacity) >
		       counts->spill->memory_limit / PARTS;
}

enum status word_counter_create(struct word_counter **out, struct word_counts *counts)
{
	struct word_counter *counter;

	*out = NULL;
	TRY(memory_new(&counter, 1, sizeof *counter, "word counts"));
	counter->counts = counts;
	enum status status = count_table_create(&counter->table, LOCAL_SLOTS);
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
	count_table_release(&counter->table);
	free(counter);
}

enum status word_counter_add(struct word_counter *counter, const char *word, size_t size)
{
	BUG_IF(size == 0 || size > WORD_COUNTS_LONGEST);
	if (count_table_is_full(&counter->table) || counter->table.text_size > LOCAL_TEXT_BYTES)
		TRY(word_counter_flush(counter));
	return count_table_add(&counter->table, hash64(word, size), word, size, 1);
}

enum status word_counter_flush(struct word_counter *counter)
{
	struct count_table *local = &counter->table;
	enum status status = OK;

	for (int64_t i = 0; i < local->slot_count && status == OK; i++) {
		struct count_slot *slot = &local->slots[i];
		if (slot->count == 0)
			continue;
		struct part *part = &counter->counts->parts[slot->hash / (UINT64_MAX / PARTS + 1)];
		pthread_mutex_lock(&part->lock);
		if (count_table_is_full(&part->table))
			status = outgrows(counter->counts, &part->table) ? spill_part(counter->counts, part)
									 : count_table_double(&part->table);
		if (status == OK)
			status = count_table_add(&part->table, slot->hash, count_table_string(local, slot), count_slot_size(slot),
						 slot->count);
		pthread_mutex_unlock(&part->lock);
	}
	count_table_clear(local);
	return status;
}

/* Reading */

static enum status visit_table(const struct count_table *table, word_counts_visitor *visit, void *context)
{
	for (int64_t i = 0; i < table->slot_count; i++) {
		const struct count_slot *slot = &table->slots[i];
		if (slot->count)
			TRY(visit(context, count_table_string(table, slot), count_slot_size(slot), slot->count));
	}
	return OK;
}

enum status word_counts_visit(struct word_counts *counts, word_counts_visitor *visit, void *context)
{
	for (int k = 0; k < PARTS; k++) {
		struct part *part = &counts->parts[k];
		if (part->run_count == 0) {
			TRY(visit_table(&part->table, visit, context));
			continue;
		}
		/* The first visit leaves a single run, which later visits read. */
		if (part->table.used > 0)
			TRY(spill_part(counts, part));
		if (part->run_count > 1)
			TRY(merge_last_runs(counts, part, part->run_count));
		TRY(visit_runs(counts, part->runs, part->run_count, visit, context));
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
