/* Corpus -> word counts -> alphabet -> merges -> vocabulary.
 *
 * Counting: while the workers of the pool count the words of one batch of text, one of them reads the next.
 * Merging runs on one core: it touches few words at a time and takes a second or two, or a minute if the words do not
 * fit in memory.
 */
#include "text/vocab_learn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buffer.h"
#include "base/log.h"
#include "base/memory.h"
#include "text/utf8.h"
#include "text/vocabulary/learner.h"
#include "text/vocabulary/word_counts.h"

#define BATCH_BYTES ((size_t)4 << 20) /* of text are read ahead, plus up to one document */
#define CHUNK_BYTES ((size_t)128 << 10)
#define CODE_POINTS 0x110000

static const char *const special_entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
#define SPECIALS 5
#define UNUSED_BYTES 24 /* for "[unusedN]" */

enum status vocab_learner_create(struct vocab_learner **out, enum vocab_type type, const struct tokenizer_settings *settings,
				 const struct spill_settings *spill)
{
	struct vocab_learner *learner;

	*out = NULL;
	TRY(memory_new(&learner, 1, sizeof *learner, "vocabulary learning"));
	learner->type = type;
	learner->settings = *settings;
	learner->settings.special_tokens = false; /* "[MASK]" in a corpus is text */
	/* Half for each, since merging begins while the word counts are still in memory. */
	learner->counts_spill = spill ? *spill : (struct spill_settings){0};
	learner->counts_spill.memory_limit = (learner->counts_spill.memory_limit + 1) / 2;
	learner->merging_spill = learner->counts_spill;
	enum status status = word_counts_create(&learner->counts, &learner->counts_spill);
	if (status == OK && type == VOCAB_BPE)
		status = bpe_words_open(&learner->chain);
	if (status != OK) {
		vocab_learner_free(learner);
		return status;
	}
	*out = learner;
	return OK;
}

void vocab_learner_free(struct vocab_learner *learner)
{
	if (!learner)
		return;
	word_counts_free(learner->counts);
	chain_release(&learner->chain);
	free(learner);
}

/* Counting */

struct worker {
	struct word_counter *counter;
	struct tokens scratch;
	struct chain_run run;
	int64_t words, long_words;
	int longest; /* most characters of a word that is counted */
	struct error error;
};

struct counting {
	struct vocab_learner *learner;
	struct corpus *corpus;
	struct worker *workers;
	struct buffer batches[2]; /* one is counted while the other is filled; sentences, each followed by '\n' */
	int full;                 /* index of the one being counted */
	bool corpus_ended;
	struct error reading_error;
};

static enum status count_word(void *context, const char *word, size_t size)
{
	struct worker *worker = context;
	worker->words++;
	if (size > (size_t)worker->longest && (size > WORD_COUNTS_LONGEST || utf8_length(word, size) > (size_t)worker->longest)) {
		worker->long_words++;
		return OK;
	}
	return word_counter_add(worker->counter, word, size);
}

/* Fills the batch that is not being counted. */
static enum status read_batch(struct counting *counting)
{
	struct buffer *batch = &counting->batches[!counting->full];
	const struct document *document;

	buffer_clear(batch);
	while (batch->size < BATCH_BYTES && !counting->corpus_ended) {
		TRY(corpus_next(counting->corpus, &document));
		if (!document) {
			counting->corpus_ended = true;
			break;
		}
		buffer_append(batch, document->text, document->text_size);
		buffer_char(batch, '\n');
	}
	return buffer_status(batch);
}

/* A chunk begins after the first '\n' at or after its nominal place, so that no word is cut. */
static size_t chunk_begin(const struct buffer *batch, size_t index)
{
	size_t at = index * CHUNK_BYTES;
	if (index == 0)
		return 0;
	if (at >= batch->size)
		return batch->size;
	const char *newline = memchr(batch->data + at, '\n', batch->size - at);
	return (size_t)(newline - batch->data) + 1;
}

/* Task 0 reads ahead; task i counts chunk i - 1. */
static void counting_task(void *context, int64_t index, int worker_number)
{
	struct counting *counting = context;
	struct worker *worker = &counting->workers[worker_number];

	if (index == 0) {
		if (read_batch(counting) != OK)
			counting->reading_error = *error_last();
		return;
	}
	const struct buffer *batch = &counting->batches[counting->full];
	size_t begin = chunk_begin(batch, (size_t)index - 1), end = chunk_begin(batch, (size_t)index);
	if (begin >= end || worker->error.status != OK)
		return;
	const struct vocab_learner *learner = counting->learner;
	const char *text = batch->data + begin;
	enum status status =
		learner->type == VOCAB_BPE
			? bpe_words(&learner->chain, &worker->run, text, end - begin, count_word, worker)
			: tokenizer_words(&learner->settings, text, end - begin, &worker->scratch, count_word, worker);
	if (status != OK)
		worker->error = *error_last();
}

static enum status count_batches(struct counting *counting, struct pool *pool, int threads, struct progress *progress)
{
	for (;;) {
		const struct buffer *batch = &counting->batches[counting->full];
		int64_t tasks = 1 + (int64_t)((batch->size + CHUNK_BYTES - 1) / CHUNK_BYTES);

		if (pool)
			pool_run(pool, tasks, counting_task, counting);
		else
			for (int64_t i = 0; i < tasks; i++)
				counting_task(counting, i, 0);
		for (int i = 0; i < threads; i++)
			if (counting->workers[i].error.status != OK)
				return error_restore(&counting->workers[i].error);
		if (counting->reading_error.status != OK)
			return error_restore(&counting->reading_error);

		int64_t done = corpus_done_bytes(counting->corpus), words = 0;
		for (int i = 0; i < threads; i++)
			words += counting->workers[i].words;
		progress_update(progress, done < 0 ? 0 : done, "%.1f million words", (double)words / 1e6);
		counting->full = !counting->full;
		if (counting->batches[counting->full].size == 0 && counting->corpus_ended)
			return OK;
	}
}

enum status vocab_learner_count(struct vocab_learner *learner, struct corpus *corpus, struct pool *pool)
{
	struct counting counting = {.learner = learner, .corpus = corpus};
	int threads = pool ? pool_threads(pool) : 1;
	int64_t total = corpus_total_bytes(corpus);
	struct progress progress;
	enum status status = OK;

	TRY(memory_new(&counting.workers, threads, sizeof *counting.workers, "vocabulary learning"));
	progress_start(&progress, corpus_is_compressed(corpus) ? "counting words in compressed text" : "counting words", 0,
		       total < 0 ? 0 : total, "bytes");
	for (int i = 0; i < threads; i++) {
		counting.workers[i].longest =
			learner->type == VOCAB_BPE ? WORD_COUNTS_LONGEST : learner->settings.max_word_characters;
		TRY_GOTO(word_counter_create(&counting.workers[i].counter, learner->counts), done);
	}
	TRY_GOTO(count_batches(&counting, pool, threads, &progress), done);
	for (int i = 0; i < threads; i++) {
		TRY_GOTO(word_counter_flush(counting.workers[i].counter), done);
		learner->words += counting.workers[i].words;
		learner->long_words += counting.workers[i].long_words;
	}
done:
	progress_finish(&progress);
	for (int i = 0; i < threads; i++) {
		word_counter_free(counting.workers[i].counter);
		tokens_release(&counting.workers[i].scratch);
		chain_run_release(&counting.workers[i].run);
	}
	free(counting.workers);
	buffer_release(&counting.batches[0]);
	buffer_release(&counting.batches[1]);
	return status;
}

enum status vocab_learner_visit(struct vocab_learner *learner, word_counts_visitor *visit, void *context)
{
	return word_counts_visit(learner->counts, visit, context);
}

/* The alphabet */

/* How often each character occurs. */
struct alphabet {
	int64_t *counts;      /* [CODE_POINTS] */
	unsigned char *inner; /* [CODE_POINTS] seen within a word, after its first character */
	uint32_t *kept;       /* [kept_count] by code point, which is the order of their bytes */
	int64_t kept_count, seen_count;
	int64_t characters, kept_characters; /* occurrences */
};

static void alphabet_release(struct alphabet *alphabet)
{
	free(alphabet->counts);
	free(alphabet->inner);
	free(alphabet->kept);
}

static enum status count_alphabet(void *context, const char *word, size_t size, int64_t count)
{
	struct alphabet *alphabet = context;
	for (size_t at = 0; at < size;) {
		uint32_t c;
		bool first = at == 0;
		at += utf8_decode(word + at, size - at, &c);
		if (c == UTF8_INVALID)
			continue;
		alphabet->counts[c] += count;
		alphabet->inner[c] |= !first;
		alphabet->characters += count;
	}
	return OK;
}

/* Sorted by decreasing count, ties by item. */
struct ranked {
	int64_t count;
	uint32_t item;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->item > y->item) - (x->item < y->item);
}

static int compare_characters(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static enum status alphabet_create(struct alphabet *alphabet, const struct vocab_learner *learner)
{
	*alphabet = (struct alphabet){0};
	TRY(memory_new(&alphabet->counts, CODE_POINTS, sizeof *alphabet->counts, "alphabet"));
	TRY(memory_new(&alphabet->inner, CODE_POINTS, 1, "alphabet"));
	TRY(word_counts_visit(learner->counts, count_alphabet, alphabet));
	for (uint32_t c = 0; c < CODE_POINTS; c++)
		alphabet->seen_count += alphabet->counts[c] > 0;
	return OK;
}

/* Number of entries for a character: one for the start of a word, one more if it occurs within words. */
static int alphabet_entries(const struct alphabet *alphabet, uint32_t c)
{
	return 1 + alphabet->inner[c];
}

/* Keeps the most frequent characters whose entries fit into `room`. */
static enum status alphabet_choose(struct alphabet *alphabet, int64_t room)
{
	struct ranked *ranked;
	int64_t count = 0;

	TRY(memory_new(&alphabet->kept, alphabet->seen_count, sizeof *alphabet->kept, "alphabet"));
	TRY(memory_new(&ranked, alphabet->seen_count, sizeof *ranked, "alphabet"));
	for (uint32_t c = 0; c < CODE_POINTS; c++)
		if (alphabet->counts[c])
			ranked[count++] = (struct ranked){alphabet->counts[c], c};
	qsort(ranked, (size_t)count, sizeof *ranked, compare_ranked);
	for (int64_t i = 0; i < count; i++) {
		room -= alphabet_entries(alphabet, ranked[i].item);
		if (room < 0)
			break;
		alphabet->kept[alphabet->kept_count++] = ranked[i].item;
		alphabet->kept_characters += ranked[i].count;
	}
	free(ranked);
	qsort(alphabet->kept, (size_t)alphabet->kept_count, sizeof *alphabet->kept, compare_characters);
	return OK;
}

int32_t vocab_default_size(const struct vocab_learner *learner)
{
	struct alphabet alphabet;
	int64_t entries = 0, size = 30522;

	if (learner->words < 400000)
		size = 4000;
	else if (learner->words < 2000000)
		size = 8000;
	else if (learner->words < 20000000)
		size = 16000;
	if (learner->type == VOCAB_BPE)
		return (int32_t)size; /* the alphabet are the 256 bytes */
	if (alphabet_create(&alphabet, learner) == OK)
		for (uint32_t c = 0; c < CODE_POINTS; c++)
			if (alphabet.counts[c])
				entries += alphabet_entries(&alphabet, c);
	alphabet_release(&alphabet);
	if (size < 2 * entries)
		size = 2 * entries < 30522 ? 2 * entries : 30522;
	return (int32_t)size;
}

/* Merging */

/* The id of a character's symbol, -1 if it is not in the alphabet: [0] at the start of a word, [1] within a word. */
struct symbol_ids {
	int32_t *ids[2]; /* [CODE_POINTS] */
};

static enum status add_character(struct pair_merger *merger, uint32_t c, bool inner, int32_t *ids)
{
	char text[6] = "##";
	size_t size = inner ? 2 : 0;

	size += utf8_encode(c, text + size);
	ids[c] = pair_merger_symbols(merger);
	return pair_merger_add_symbol(merger, text, size);
}

static enum status add_alphabet(struct pair_merger *merger, const struct alphabet *alphabet, struct symbol_ids *symbols)
{
	for (int inner = 0; inner < 2; inner++) {
		TRY(memory_new(&symbols->ids[inner], CODE_POINTS, sizeof *symbols->ids[inner], "alphabet"));
		memset(symbols->ids[inner], -1, CODE_POINTS * sizeof *symbols->ids[inner]);
		for (int64_t i = 0; i < alphabet->kept_count; i++)
			if (!inner || alphabet->inner[alphabet->kept[i]])
				TRY(add_character(merger, alphabet->kept[i], inner, symbols->ids[inner]));
	}
	return OK;
}

struct word_adder {
	struct word_merger *merger;
	const struct symbol_ids *symbols;
	int32_t row[WORD_COUNTS_LONGEST];
};

/* A word with a character outside the alphabet would be [UNK], so it is left out. */
static enum status add_word(void *context, const char *word, size_t size, int64_t count)
{
	struct word_adder *adder = context;
	int32_t length = 0;

	for (size_t at = 0; at < size;) {
		uint32_t c;
		bool inner = at > 0;
		at += utf8_decode(word + at, size - at, &c);
		int32_t id = c == UTF8_INVALID ? -1 : adder->symbols->ids[inner][c];
		if (id < 0)
			return OK;
		adder->row[length++] = id;
	}
	return length > 1 ? word_merger_add(adder->merger, adder->row, length, count) : OK;
}

static void show_merges(void *context, int32_t symbols)
{
	progress_update(context, symbols, "%s", "");
}

enum status vocab_learner_merge(struct word_merger *words, struct pair_merger *merger, int32_t size, int64_t min_frequency)
{
	struct progress progress;
	progress_start(&progress, "merging pairs", pair_merger_symbols(merger), size, "entries");
	enum status status = word_merger_run(words, size, min_frequency > 1 ? min_frequency : 1, show_merges, &progress);
	progress_update(&progress, pair_merger_symbols(merger), "%s", "");
	progress_finish(&progress);
	return status;
}

static enum status merge_words(const struct vocab_learner *learner, const struct alphabet *alphabet, int32_t size,
			       int64_t min_frequency, struct pair_merger *merger)
{
	struct symbol_ids symbols = {{0}};
	struct word_merger *words = NULL;
	struct word_adder *adder = NULL;
	enum status status = OK;

	TRY_GOTO(add_alphabet(merger, alphabet, &symbols), done);
	TRY_GOTO(word_merger_create(&words, merger, &learner->merging_spill), done);
	TRY_GOTO(memory_new(&adder, 1, sizeof *adder, "vocabulary learning"), done);
	adder->merger = words;
	adder->symbols = &symbols;
	TRY_GOTO(word_counts_visit(learner->counts, add_word, adder), done);
	status = vocab_learner_merge(words, merger, size, min_frequency);
done:
	word_merger_free(words);
	free(adder);
	free(symbols.ids[0]);
	free(symbols.ids[1]);
	return status;
}

/* The result
 *
 * On the way to longer entries, pair merging makes shorter ones ("georgino" before "georginow") that WordPiece, which
 * takes the longest match, then never uses: rows of the embedding that no text trains. So more pairs are merged
 * than requested, and the entries that the text uses least are dropped, in a few rounds, because each drop changes how
 * often others are used.
 */

#define OVERSHOOT(size) ((size) / 4)
#define ROUNDS 3

struct entries {
	const char **head; /* [head_count] special, unused and the user's entries, which are always kept */
	int32_t head_count;
	char *head_text;
	const struct pair_merger *merger;
	int32_t *symbols; /* [count] ascending; the first `fixed` are the alphabet, which is always kept */
	int32_t count, fixed;
	int64_t *uses; /* [head_count + count] how often each is used by the counted words */
};

static enum status make_vocab(const struct entries *entries, struct vocab *out)
{
	const char **texts;

	TRY(memory_new(&texts, entries->head_count + entries->count, sizeof *texts, "vocabulary"));
	for (int32_t i = 0; i < entries->head_count; i++)
		texts[i] = entries->head[i];
	for (int32_t i = 0; i < entries->count; i++)
		texts[entries->head_count + i] = pair_merger_text(entries->merger, entries->symbols[i]);
	enum status status = vocab_from_entries(out, texts, entries->head_count + entries->count);
	free(texts);
	return status;
}

struct trial {
	const struct tokenizer *tokenizer;
	struct tokens tokens;
	int64_t *uses;
	int64_t words, pieces, unknown;
};

static enum status try_word(void *context, const char *word, size_t size, int64_t count)
{
	struct trial *trial = context;
	int64_t unknown = trial->tokens.unknown;

	tokens_clear(&trial->tokens);
	TRY(tokenizer_encode(trial->tokenizer, word, size, &trial->tokens));
	for (int64_t i = 0; i < trial->tokens.count; i++)
		trial->uses[trial->tokens.ids[i]] += count;
	trial->words += count;
	trial->pieces += count * trial->tokens.count;
	trial->unknown += trial->tokens.unknown > unknown ? count : 0;
	return OK;
}

/* Encodes the counted words with the vocabulary, counting how often each entry is used. */
static enum status measure(const struct vocab_learner *learner, const struct vocab *vocab, int64_t *uses,
			   struct vocab_learn_report *report)
{
	struct trial trial = {.uses = uses};
	struct tokenizer *tokenizer = NULL;
	enum status status;

	memset(uses, 0, (size_t)vocab->count * sizeof *uses);
	TRY_GOTO(tokenizer_open(&tokenizer, vocab, &learner->settings), done);
	trial.tokenizer = tokenizer;
	TRY_GOTO(word_counts_visit(learner->counts, try_word, &trial), done);
	report->tokens_per_word = trial.words > 0 ? (double)trial.pieces / (double)trial.words : 0;
	report->unknown_words = trial.words > 0 ? (double)trial.unknown / (double)trial.words : 0;
done:
	tokens_release(&trial.tokens);
	tokenizer_close(tokenizer);
	return status;
}

/* Drops the `drop` least used entries; among equals, those merged later. */
static enum status drop_least_used(struct entries *entries, int32_t drop)
{
	struct ranked *ranked;
	int32_t count = entries->count - entries->fixed, kept = entries->fixed;

	TRY(memory_new(&ranked, count, sizeof *ranked, "vocabulary"));
	for (int32_t i = 0; i < count; i++)
		ranked[i] =
			(struct ranked){entries->uses[entries->head_count + entries->fixed + i], (uint32_t)(entries->fixed + i)};
	qsort(ranked, (size_t)count, sizeof *ranked, compare_ranked);
	for (int32_t i = count - drop; i < count; i++)
		entries->symbols[ranked[i].item] = -1;
	for (int32_t i = entries->fixed; i < entries->count; i++)
		if (entries->symbols[i] >= 0)
			entries->symbols[kept++] = entries->symbols[i];
	entries->count = kept;
	free(ranked);
	return OK;
}

/* Chooses at most `size` of all symbols and makes the vocabulary from them. */
static enum status choose_entries(const struct vocab_learner *learner, struct entries *entries, int32_t size, struct vocab *out,
				  struct vocab_learn_report *report)
{
	bool scarce = entries->count < size + OVERSHOOT(size); /* merging ran out of pairs */

	for (int round = 1;; round++) {
		TRY(make_vocab(entries, out));
		enum status status = measure(learner, out, entries->uses, report);
		int32_t excess = entries->count - size, unused = 0;
		for (int32_t i = entries->fixed; i < entries->count; i++)
			unused += entries->uses[entries->head_count + i] == 0;
		int32_t drop = excess > 0 ? round < ROUNDS ? (excess + 1) / 2 : excess : 0;
		if (scarce && drop < unused)
			drop = unused;
		if (status == OK && drop == 0)
			return OK;
		vocab_release(out);
		TRY(status);
		TRY(drop_least_used(entries, drop));
	}
}

/* Checks what the tokenizer makes of a user's word: parts == 1 if it is unchanged. */
struct user_word {
	const char *text;
	size_t size;
	int parts;
};

static enum status see_part(void *context, const char *word, size_t size)
{
	struct user_word *user = context;
	bool same = size == user->size && memcmp(word, user->text, size) == 0;
	user->parts += same ? 1 : 2;
	return OK;
}

static enum status check_user_word(const struct vocab_learner *learner, const char *text)
{
	struct user_word user = {.text = text, .size = strlen(text)};
	struct tokens scratch = {0};
	enum status status = tokenizer_words(&learner->settings, text, user.size, &scratch, see_part, &user);
	tokens_release(&scratch);
	TRY(status);
	if (user.parts == 1 && (int)utf8_length(text, user.size) <= learner->settings.max_word_characters)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "the tokenizer never makes the word '%.100s' of a text", text),
			    "%s, and are cut at spaces and marks",
			    learner->settings.lowercase ? "words are lower case without accents here (see --cased)"
							: "words are taken as they are");
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The first entries: special, [unusedN], the user's words. */
static enum status make_head(const struct vocab_learner *learner, const struct vocab_learn_settings *settings,
			     struct entries *entries)
{
	int64_t count = SPECIALS + (int64_t)settings->unused + settings->user_word_count;
	if (count >= settings->size)
		return error_set(ERR_USAGE,
				 "a vocabulary of %" PRId32 " entries has no room beside %" PRId64
				 " special, unused and given ones",
				 settings->size, count);
	TRY(memory_new(&entries->head, count, sizeof *entries->head, "vocabulary"));
	TRY(memory_new(&entries->head_text, settings->unused, UNUSED_BYTES, "vocabulary"));
	for (int i = 0; i < SPECIALS; i++)
		entries->head[entries->head_count++] = special_entries[i];
	for (int32_t i = 0; i < settings->unused; i++) {
		char *text = entries->head_text + i * UNUSED_BYTES;
		snprintf(text, UNUSED_BYTES, "[unused%" PRId32 "]", i);
		entries->head[entries->head_count++] = text;
	}
	for (int32_t i = 0; i < settings->user_word_count; i++) {
		TRY(check_user_word(learner, settings->user_words[i]));
		entries->head[entries->head_count++] = settings->user_words[i];
	}
	return OK;
}

/* Takes the merger's symbols, except those that are user's words and so in the head already. (A word of one character is also in
 * the alphabet.) */
static enum status take_symbols(struct entries *entries, const struct vocab_learn_settings *settings, int32_t fixed)
{
	const char **words;
	int32_t symbols = pair_merger_symbols(entries->merger);
	TRY(memory_new(&words, settings->user_word_count, sizeof *words, "vocabulary"));
	for (int32_t i = 0; i < settings->user_word_count; i++)
		words[i] = settings->user_words[i];
	qsort(words, (size_t)settings->user_word_count, sizeof *words, compare_texts);
	for (int32_t i = 0; i < symbols; i++) {
		const char *text = pair_merger_text(entries->merger, i);
		if (bsearch(&text, words, (size_t)settings->user_word_count, sizeof *words, compare_texts))
			continue;
		entries->fixed += i < fixed;
		entries->symbols[entries->count++] = i;
	}
	free(words);
	return OK;
}

/* ERR_DATA if no word was counted. Fills what the report says about the counted words, and lets merging use the memory that they
 * do not take. */
static enum status vocab_learner_begin(struct vocab_learner *learner, struct vocab_learn_report *report)
{
	*report = (struct vocab_learn_report){.words = learner->words, .long_words = learner->long_words};
	TRY(word_counts_distinct(learner->counts, &report->distinct_words));
	if (word_counts_spilled(learner->counts) > 0)
		learner->merging_spill.memory_limit = 2 * learner->counts_spill.memory_limit; /* no words are in memory */
	if (report->distinct_words > 0)
		return OK;
	if (learner->long_words > 0)
		return error_set(ERR_DATA,
				 "the corpus has no words to learn a vocabulary from: all %" PRId64
				 " are longer than %d characters",
				 learner->long_words, learner->settings.max_word_characters);
	return error_hinted(error_set(ERR_DATA, "the corpus has no words to learn a vocabulary from"),
			    "`bertc extract PATH --out -` shows what is read in a file");
}

enum status vocab_learner_finish(struct vocab_learner *learner, const struct vocab_learn_settings *settings, struct vocab *out,
				 struct vocab_learn_report *report)
{
	int32_t size = settings->size, fixed = 0;
	int64_t min_frequency = settings->min_frequency;
	struct alphabet alphabet = {0};
	struct pair_merger *merger = NULL;
	struct entries entries = {0};
	enum status status = OK;

	*out = (struct vocab){0};
	TRY(vocab_learner_begin(learner, report));
	if (learner->type == VOCAB_BPE)
		return bpe_learner_finish(learner, settings, out, report);
	TRY_GOTO(make_head(learner, settings, &entries), done);
	int32_t room = size - entries.head_count;
	TRY_GOTO(alphabet_create(&alphabet, learner), done);
	TRY_GOTO(alphabet_choose(&alphabet, room), done);
	if (alphabet.kept_count == 0) {
		status = error_set(ERR_USAGE, "a vocabulary of %" PRId32 " entries has no room for a single character", size);
		goto done;
	}
	report->alphabet = alphabet.kept_count;
	report->alphabet_dropped = alphabet.seen_count - alphabet.kept_count;
	report->coverage = (double)alphabet.kept_characters / (double)alphabet.characters;

	TRY_GOTO(pair_merger_create(&merger, MERGE_WORDPIECES), done);
	TRY_GOTO(merge_words(learner, &alphabet, room + OVERSHOOT(room), min_frequency, merger), done);
	entries.merger = merger;
	for (int64_t i = 0; i < alphabet.kept_count; i++)
		fixed += alphabet_entries(&alphabet, alphabet.kept[i]);
	TRY_GOTO(memory_new(&entries.symbols, pair_merger_symbols(merger), sizeof *entries.symbols, "vocabulary"), done);
	TRY_GOTO(take_symbols(&entries, settings, fixed), done);
	TRY_GOTO(memory_new(&entries.uses, entries.head_count + entries.count, sizeof *entries.uses, "vocabulary"), done);
	TRY_GOTO(choose_entries(learner, &entries, room, out, report), done);
	report->merges = entries.count - entries.fixed;
	for (int32_t i = entries.fixed; i < entries.count; i++)
		report->rare_merges += entries.uses[entries.head_count + i] < 10;

	if (report->alphabet_dropped > 0)
		log_warning("the text has %" PRId64 " different characters; the %" PRId64 " rarest do not fit into %" PRId32
			    " entries and become [UNK] (%.4f %% of all characters)",
			    alphabet.seen_count, report->alphabet_dropped, size, 100 * (1 - report->coverage));
	if (out->count < size)
		log_note("%" PRId32 " entries, not %" PRId32 ": no further pair of pieces is seen %" PRId64 " times or more",
			 out->count, size, min_frequency > 1 ? min_frequency : 1);
done:
	free(entries.head);
	free(entries.head_text);
	free(entries.symbols);
	free(entries.uses);
	pair_merger_free(merger);
	alphabet_release(&alphabet);
	return status;
}
