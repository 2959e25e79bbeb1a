/* Word counts -> merges of bytes -> a vocabulary of byte-level BPE, as Hugging Face's BpeTrainer makes it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/memory.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/pair_files.h"
#include "text/tokenizer/token_files.h"
#include "text/vocab_json.h"
#include "text/vocabulary/learner.h"

#define BYTES 256
#define SPECIALS 5
#define RARE 10 /* uses; see struct vocab_learn_report */

/* Sentences are tokenized one by one, so a word at the beginning of one must be the same as elsewhere: a space is added. */
static const char config[] = "{\"tokenizer_class\": \"RobertaTokenizer\", \"add_prefix_space\": true, \"trim_offsets\": true}";

/* ---- Words ---- */

enum status bpe_words_open(struct chain *out)
{
	static const char text[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": true}";
	struct json_document document;
	*out = (struct chain){.count = 0};
	TRY(json_parse(&document, "ByteLevel", text, strlen(text)));
	enum status status = chain_add(out, &stage_byte_level, &(struct part){document.root, "ByteLevel", "pre_tokenizer"});
	json_release(&document);
	return status;
}

struct word_visit {
	enum status (*visit)(void *context, const char *word, size_t bytes);
	void *context;
};

static enum status visit_word(void *context, const struct word *word)
{
	const struct word_visit *visit = context;
	return visit->visit(visit->context, word->text, word->size);
}

enum status bpe_words(const struct chain *chain, struct chain_run *run, const char *text, size_t size,
		      enum status (*visit)(void *context, const char *word, size_t bytes), void *context)
{
	struct word_visit to = {visit, context};
	run->chain = chain;
	run->word = visit_word;
	run->context = &to;
	enum status status = OK;
	for (size_t at = 0, end; at < size && status == OK; at = end + 1) {
		const char *newline = memchr(text + at, '\n', size - at);
		end = newline ? (size_t)(newline - text) : size;
		status = chain_run_text(run, text, at, end);
	}
	run->context = NULL;
	return status;
}

/* ---- Merging ---- */

/* The order of the trainer: by the code points of the characters that stand for the bytes. */
static enum status add_bytes(struct pair_merger *merger, int32_t ids[BYTES])
{
	int32_t at = pair_merger_symbols(merger);
	bool added[BYTES] = {false};
	for (int32_t i = 0; i < BYTES; i++) {
		char text[4], best[4] = "";
		size_t size, best_size = 0;
		int first = -1;
		for (int byte = 0; byte < BYTES; byte++) {
			size = byte_level_character((uint8_t)byte, text);
			if (added[byte] || (first >= 0 && memcmp(text, best, sizeof text) >= 0))
				continue;
			first = byte;
			best_size = size;
			memset(best, 0, sizeof best);
			memcpy(best, text, size);
		}
		added[first] = true;
		ids[first] = at + i;
		TRY(pair_merger_add_symbol(merger, best, best_size));
	}
	return OK;
}

struct word_adder {
	struct word_merger *words;
	int32_t ids[BYTES], row[WORD_COUNTS_LONGEST];
};

static enum status add_word(void *context, const char *word, size_t size, int64_t count)
{
	struct word_adder *adder = context;
	for (size_t i = 0; i < size; i++)
		adder->row[i] = adder->ids[(uint8_t)word[i]];
	return size > 1 ? word_merger_add(adder->words, adder->row, (int32_t)size, count) : OK;
}

static enum status merge(struct vocab_learner *learner, const struct vocab_learn_settings *settings, struct pair_merger *merger)
{
	static const char *const special[SPECIALS] = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
	struct word_adder *adder;
	enum status status;
	TRY(memory_new(&adder, 1, sizeof *adder, "vocabulary learning"));
	for (int i = 0; i < SPECIALS; i++)
		TRY_GOTO(pair_merger_add_symbol(merger, special[i], strlen(special[i])), done);
	TRY_GOTO(add_bytes(merger, adder->ids), done);
	TRY_GOTO(word_merger_create(&adder->words, merger, &learner->merging_spill), done);
	TRY_GOTO(word_counts_visit(learner->counts, add_word, adder), done);
	status = vocab_learner_merge(adder->words, merger, settings->size, settings->min_frequency);
done:
	word_merger_free(adder->words);
	free(adder);
	return status;
}

/* ---- The result ---- */

/* {"<s>": 0, ...} */
static void put_entries(const struct pair_merger *merger, struct buffer *out)
{
	struct json_writer json = {.out = out};
	json_open(&json, NULL, '{');
	for (int32_t i = 0; i < pair_merger_symbols(merger); i++)
		json_put_integer(&json, pair_merger_text(merger, i), i);
	json_close(&json);
}

/* One merge a line. */
static void put_merges(const struct pair_merger *merger, struct buffer *out)
{
	int64_t count;
	const struct pair_merge *merges = pair_merger_all_merges(merger, &count);
	for (int64_t i = 0; i < count; i++)
		buffer_format(out, "%s %s\n", pair_merger_text(merger, merges[i].left),
			      pair_merger_text(merger, merges[i].right));
}

static enum status make_vocab(const struct pair_merger *merger, struct vocab *out)
{
	struct buffer entries = {0}, merges = {0}, text = {0};
	struct json_document document = {0};
	struct token_files files = {.config_path = "tokenizer_config.json"};
	enum status status;
	put_entries(merger, &entries);
	buffer_text(&files.config_text, config);
	put_merges(merger, &merges);
	TRY_GOTO(buffer_status(&entries), done);
	TRY_GOTO(buffer_status(&files.config_text), done);
	TRY_GOTO(buffer_status(&merges), done);
	TRY_GOTO(json_parse(&document, "vocab.json", buffer_string(&entries), entries.size), done);
	TRY_GOTO(json_parse(&files.config, files.config_path, config, strlen(config)), done);
	TRY_GOTO(pair_files_join(document.root, "vocab.json", buffer_string(&merges), &files, &text), done);
	status = vocab_from_json(out, "tokenizer.json", &text, &files);
done:
	token_files_release(&files);
	json_release(&document);
	buffer_release(&entries);
	buffer_release(&merges);
	buffer_release(&text);
	return status;
}

struct trial {
	const struct chain *chain;
	struct pieces pieces;
	int64_t *uses, words, count;
};

static enum status try_word(void *context, const char *word, size_t size, int64_t count)
{
	struct trial *trial = context;
	trial->pieces.count = 0;
	TRY(trial->chain->model->cut(trial->chain->model_own, word, size, &trial->pieces));
	for (int64_t i = 0; i < trial->pieces.count; i++)
		trial->uses[trial->pieces.items[i].id] += count;
	trial->words += count;
	trial->count += count * trial->pieces.count;
	return OK;
}

static enum status measure(struct vocab_learner *learner, const struct vocab *vocab, struct vocab_learn_report *report)
{
	struct trial trial = {.chain = vocab->chain};
	TRY(memory_new(&trial.uses, vocab->count, sizeof *trial.uses, "vocabulary"));
	enum status status = word_counts_visit(learner->counts, try_word, &trial);
	report->tokens_per_word = trial.words > 0 ? (double)trial.count / (double)trial.words : 0;
	report->alphabet = BYTES;
	report->coverage = 1;
	report->merges = vocab->count - SPECIALS - BYTES;
	for (int32_t i = SPECIALS + BYTES; i < vocab->count; i++)
		report->rare_merges += trial.uses[i] < RARE;
	pieces_release(&trial.pieces);
	free(trial.uses);
	return status;
}

enum status bpe_learner_finish(struct vocab_learner *learner, const struct vocab_learn_settings *settings, struct vocab *out,
			       struct vocab_learn_report *report)
{
	struct pair_merger *merger;
	if (settings->size < SPECIALS + BYTES)
		return error_set(ERR_USAGE,
				 "a vocabulary of %" PRId32 " entries has no room for the %d special tokens and the %d bytes",
				 settings->size, SPECIALS, BYTES);
	TRY(pair_merger_create(&merger, MERGE_BYTES));
	enum status status = merge(learner, settings, merger);
	if (status == OK)
		status = make_vocab(merger, out);
	pair_merger_free(merger);
	TRY(status);
	if (out->count < settings->size)
		log_note("%" PRId32 " entries, not %" PRId32 ": no further pair of pieces is seen %" PRId64 " times or more",
			 out->count, settings->size, settings->min_frequency > 1 ? settings->min_frequency : 1);
	status = measure(learner, out, report);
	if (status != OK)
		vocab_release(out);
	return status;
}
