/* Rewriting texts with the help of what was said before them: "它的作者是谁" after "你知道简爱吗" becomes "简爱的作者是谁". Files
 * are tables with a source, a target and any number of contexts (tasks/examples.h).
 *
 * As in RaST, the model tags tokens with edits (tasks/edits.h): each token of the source is kept or deleted, and points to the
 * first and the last token of what is inserted before it; pointing to [CLS] twice means that nothing is. The [SEP] after the
 * source stands for its end. A sequence is [CLS] context [SEP] ... [SEP] source [SEP], with the source as segment 1. A pointer's
 * logit is the dot product of a query and a key (pointer_xent in backend/ops.h), both linear in the encoder's rows. transformers
 * has no class for this head. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/owned_files.h"
#include "tasks/edits.h"
#include "tasks/measures.h"
#include "tasks/results.h"
#include "tasks/task.h"
#include "text/letters.h"
#include "text/utf8.h"

enum { CLASS_KEEP, CLASS_DELETE, CLASSES };
enum { POINTER_FIRST, POINTER_LAST, POINTERS };
#define POINTER_SIZE 64 /* of a query and a key: the size of BERT's attention heads */
#define OUTPUTS (CLASSES + 2 * POINTERS * POINTER_SIZE)
#define LABELS (1 + POINTERS)

/* The origin of every row of a set's sequences. */
struct rewriting_rows {
	struct edit_token *tokens; /* text NULL: [CLS] or [SEP] */
	int64_t count, capacity;
	int64_t *sources;           /* [examples] first row of the source */
	int64_t expressible, known; /* number of targets that edits reproduce exactly, and of all targets */
	int64_t too_long;           /* number of sources that do not fit */
	enum text_units units;      /* in which texts are compared */
};

static void rewriting_close(struct task_set *set)
{
	struct rewriting_rows *rows = set->own;
	free(rows->tokens);
	free(rows->sources);
	free(rows);
	set->own = NULL;
}

/* ---- Encoding ---- */

/* Number of texts said before the source. */
static int32_t context_count(const struct example_text *example)
{
	return example->choice_count + (example->pair ? 1 : 0);
}

static const char *context_of(const struct task_set *set, const struct example_text *example, int32_t number)
{
	return example->pair ? example->pair : set->examples.choices[example->first_choice + number];
}

/* Scratch memory for encoding one example after another. */
struct rewriting_encoder {
	const struct task_settings *settings;
	struct rewriting_rows *rows;
	struct tokens *contexts; /* [context_room] */
	int32_t context_room;
	struct tokens source, target;
	int32_t *ids;                    /* [max_seq_length] */
	int64_t *target_keys, *row_keys; /* in the form that edits_find() takes */
	int64_t target_room, row_room;
	struct edit *edits;
	int64_t edit_room;
	struct buffer text;
};

static void encoder_release(struct rewriting_encoder *encoder)
{
	for (int32_t i = 0; i < encoder->context_room; i++)
		tokens_release(&encoder->contexts[i]);
	free(encoder->contexts);
	tokens_release(&encoder->source);
	tokens_release(&encoder->target);
	free(encoder->ids);
	free(encoder->target_keys);
	free(encoder->row_keys);
	free(encoder->edits);
	buffer_release(&encoder->text);
}

static enum status tokenize(const struct rewriting_encoder *encoder, const char *text, struct tokens *out)
{
	tokens_clear(out);
	return tokenizer_encode(encoder->settings->tokenizer, text, strlen(text), out);
}

static enum status tokenize_contexts(struct rewriting_encoder *encoder, const struct task_set *set,
				     const struct example_text *example)
{
	int32_t count = context_count(example);
	if (count > encoder->context_room) {
		int64_t room = encoder->context_room;
		TRY(memory_grow(&encoder->contexts, &room, count, sizeof *encoder->contexts, "contexts"));
		for (int32_t i = encoder->context_room; i < room; i++)
			encoder->contexts[i] = (struct tokens){0};
		encoder->context_room = (int32_t)room;
	}
	for (int32_t i = 0; i < count; i++)
		TRY(tokenize(encoder, context_of(set, example, i), &encoder->contexts[i]));
	return OK;
}

/* A sequence under construction. */
struct sequence {
	int32_t count, second;
};

static void add_row(struct rewriting_encoder *encoder, struct sequence *sequence, int32_t id, struct edit_token token)
{
	encoder->ids[sequence->count++] = id;
	encoder->rows->tokens[encoder->rows->count++] = token;
}

static void add_tokens(struct rewriting_encoder *encoder, struct sequence *sequence, const char *text,
		       const struct tokens *tokens, int64_t first, int64_t count)
{
	for (int64_t i = first; i < first + count; i++)
		add_row(encoder, sequence, tokens->ids[i], (struct edit_token){text, tokens->begin[i], tokens->end[i]});
}

/* Makes [CLS] contexts, each with a [SEP], source [SEP]. What does not fit is left out, starting with the oldest context, then
 * from the end of the source; contexts of which nothing is left get no [SEP]. */
static enum status join_rows(struct rewriting_encoder *encoder, struct task_set *set, int64_t number, struct sequence *out)
{
	const struct example_text *example = &set->examples.examples[number];
	const struct vocab *vocab = tokenizer_vocab(encoder->settings->tokenizer);
	const struct edit_token none = {NULL, 0, 0};
	int64_t room = encoder->settings->max_seq_length - 2, cut = 0;
	int64_t source = encoder->source.count < room ? encoder->source.count : room;
	int32_t count = context_count(example), first = count;
	room -= source;
	cut = encoder->source.count - source;
	encoder->rows->too_long += cut > 0;
	while (first > 0 && encoder->contexts[first - 1].count + 1 <= room)
		room -= encoder->contexts[--first].count + 1;
	/* The end of the context that fits in part. */
	int64_t part = first > 0 && room > 1 ? room - 1 : 0;
	for (int32_t i = 0; i < first; i++)
		cut += encoder->contexts[i].count;
	cut -= part;
	set->cut_count += cut > 0;
	set->cut_tokens += cut;
	TRY(memory_grow(&encoder->rows->tokens, &encoder->rows->capacity,
			encoder->rows->count + encoder->settings->max_seq_length, sizeof *encoder->rows->tokens, "tokens"));
	*out = (struct sequence){0};
	add_row(encoder, out, vocab->cls, none);
	for (int32_t i = part > 0 ? first - 1 : first; i < count; i++) {
		const struct tokens *tokens = &encoder->contexts[i];
		int64_t own = i < first ? part : tokens->count;
		add_tokens(encoder, out, context_of(set, example, i), tokens, tokens->count - own, own);
		add_row(encoder, out, vocab->sep, none);
	}
	out->second = out->count;
	add_tokens(encoder, out, example->text, &encoder->source, 0, source);
	add_row(encoder, out, vocab->sep, none);
	return OK;
}

/* Tokens are equal if their ids are or, for words that the vocabulary does not contain, if their spelling is. */
static int64_t key_of(const struct vocab *vocab, int32_t id, struct edit_token token)
{
	if (id != vocab->unk)
		return id;
	return (int64_t)(hash64(token.text + token.begin, token.end - token.begin) >> 2) | (int64_t)1 << 62;
}

/* For longer targets no edits are searched: time and memory would grow without bound. */
#define TARGET_MOST 2048

/* Finds the edits that produce the target. *out_known false: the source or the target is too long. */
static enum status find_edits(struct rewriting_encoder *encoder, const char *target, const struct sequence *sequence,
			      const struct edit_token *tokens, bool *out_known)
{
	const struct vocab *vocab = tokenizer_vocab(encoder->settings->tokenizer);
	int64_t source = sequence->count - sequence->second - 1, missing;
	TRY(tokenize(encoder, target, &encoder->target));
	int64_t wanted = encoder->target.count;
	*out_known = source == encoder->source.count && wanted <= TARGET_MOST;
	if (!*out_known)
		return OK;
	TRY(memory_grow(&encoder->row_keys, &encoder->row_room, sequence->count, sizeof *encoder->row_keys, "edits"));
	TRY(memory_grow(&encoder->target_keys, &encoder->target_room, wanted, sizeof *encoder->target_keys, "edits"));
	TRY(memory_grow(&encoder->edits, &encoder->edit_room, source + 1, sizeof *encoder->edits, "edits"));
	for (int32_t i = 0; i < sequence->count; i++)
		encoder->row_keys[i] = tokens[i].text ? key_of(vocab, encoder->ids[i], tokens[i]) : -1;
	for (int64_t i = 0; i < wanted; i++)
		encoder->target_keys[i] = key_of(vocab, encoder->target.ids[i],
						 (struct edit_token){target, encoder->target.begin[i], encoder->target.end[i]});
	struct edit_texts texts = {.source = encoder->row_keys + sequence->second,
				   .source_count = source,
				   .target = encoder->target_keys,
				   .target_count = wanted,
				   .copied = encoder->row_keys,
				   .copied_count = sequence->count,
				   .preferred = sequence->second};
	return edits_find(&texts, encoder->edits, &missing);
}

/* Counts whether the edits reproduce the target exactly. */
static enum status check_edits(struct rewriting_encoder *encoder, const char *source, const char *target,
			       const struct sequence *sequence, const struct edit_token *tokens)
{
	buffer_clear(&encoder->text);
	TRY(edits_apply(source, tokens + sequence->second, sequence->count - sequence->second - 1, encoder->edits, tokens,
			&encoder->text, NULL));
	encoder->rows->expressible += strcmp(buffer_string(&encoder->text), target) == 0;
	return OK;
}

static enum status add_labels(const struct rewriting_encoder *encoder, struct task_set *set, const struct sequence *sequence,
			      bool known)
{
	for (int32_t row = sequence->second; row < sequence->count; row++) {
		int32_t labels[LABELS] = {-1, -1, -1};
		if (known) {
			const struct edit *edit = &encoder->edits[row - sequence->second];
			labels[0] = edit->deleted ? CLASS_DELETE : CLASS_KEEP;
			for (int k = 0; k < POINTERS && !edit->unknown; k++)
				labels[1 + k] = edit->first < 0 ? 0 : k == POINTER_FIRST ? edit->first : edit->last;
		}
		TRY(labeled_item(&set->encoded, 0, &row, labels, NULL, known ? 1 : 0));
	}
	return OK;
}

static enum status encode_example(struct rewriting_encoder *encoder, struct task_set *set, int64_t number)
{
	const struct example_text *example = &set->examples.examples[number];
	int64_t first = encoder->rows->count;
	struct sequence sequence;
	bool known = false;
	TRY(tokenize_contexts(encoder, set, example));
	TRY(tokenize(encoder, example->text, &encoder->source));
	TRY(join_rows(encoder, set, number, &sequence));
	encoder->rows->sources[number] = first + sequence.second;
	TRY(labeled_begin(&set->encoded));
	/* Without a context there is just one segment. */
	TRY(labeled_sequence(&set->encoded, encoder->ids, sequence.count,
			     sequence.second > 1 ? sequence.second : sequence.count));
	if (set->has_labels && example->label) {
		const struct edit_token *tokens = encoder->rows->tokens + first;
		encoder->rows->known++;
		TRY(find_edits(encoder, example->label, &sequence, tokens, &known));
		if (known)
			TRY(check_edits(encoder, example->text, example->label, &sequence, tokens));
	}
	return add_labels(encoder, set, &sequence, known);
}

/* Characters if ideographs are the majority, since Chinese has no spaces between words; else words. */
static enum text_units units_of(const struct task_set *set)
{
	struct text_letters letters = {0};
	for (int64_t i = 0; i < set->examples.count; i++) {
		const char *text = set->examples.examples[i].text;
		text_letters_count(text, strlen(text), &letters);
	}
	return letters.ideographs > letters.others ? UNITS_CHARACTERS : UNITS_WORDS;
}

/* The share of targets that edits can reproduce; a smaller one is a sign of wrong columns. */
#define FEW_EXPRESSIBLE 0.2

static void log_expressible(const struct task_set *set)
{
	const struct rewriting_rows *rows = set->own;
	if (rows->known == 0)
		return;
	log_note("%s%s%lld of %lld targets (%.1f %%) can be written by keeping, deleting and copying%s", set->name,
		 set->name[0] ? ": " : "", (long long)rows->expressible, (long long)rows->known,
		 100.0 * (double)rows->expressible / (double)rows->known,
		 rows->expressible == rows->known ? ""
		 : set->use == TASK_TRAIN         ? "; of the others, the parts that can be are learned"
						  : "; of the others none can be predicted exactly");
	if (set->use == TASK_TRAIN && (double)rows->expressible < FEW_EXPRESSIBLE * (double)rows->known)
		log_warning("hardly any target is made of the words of its text and contexts: are these the right columns "
			    "(--text_column, --label_column, --pair_column)?");
	char count[FORMAT_BYTES];
	if (rows->too_long > 0)
		log_warning("%s to be rewritten %s longer than the model: %s; --max_seq_length raises the limit",
			    format_counted(count, rows->too_long, "text", "texts"), rows->too_long == 1 ? "is" : "are",
			    set->use == TASK_TRAIN ? "nothing is learned from there" : "the end stays as it is");
}

static enum status rewriting_encode(struct task_state *state, struct task_set *set)
{
	struct rewriting_encoder encoder = {.settings = &state->settings};
	enum status status;
	TRY(memory_new(&encoder.rows, 1, sizeof *encoder.rows, "tokens"));
	set->own = encoder.rows;
	encoder.rows->units = units_of(set);
	TRY_GOTO(memory_new(&encoder.rows->sources, set->examples.count, sizeof *encoder.rows->sources, "tokens"), done);
	TRY_GOTO(memory_new(&encoder.ids, state->settings.max_seq_length, sizeof *encoder.ids, "a text's tokens"), done);
	labeled_form(&set->encoded, 0, LABELS, 1, false);
	for (int64_t i = 0; i < set->examples.count; i++)
		TRY_GOTO(encode_example(&encoder, set, i), done);
	if (!state->settings.quiet) {
		task_log_cut(set, state->settings.max_seq_length);
		log_expressible(set);
	}
	status = OK;
done:
	encoder_release(&encoder);
	return status;
}

static void rewriting_heads(const struct task_state *state, struct model_heads *out)
{
	(void)state;
	*out = (struct model_heads){.architecture = "BertForTextRewriting", .count = 1};
	out->head[0] = (struct head){
		.input = INPUT_ALL_ROWS,
		.drops = true,
		.outputs = OUTPUTS,
		.loss = LOSS_POINTERS,
		.classes = CLASSES,
		.pointers = POINTERS,
		.coefficient = 1,
		.name = "edits",
	};
}

/* ---- Decoding ---- */

/* The outputs of one example. */
struct rewriting_outputs {
	const float *logits;             /* [rows][OUTPUTS] */
	const struct edit_token *tokens; /* [rows] */
	int32_t rows, source;            /* source: its first row */
};

static struct rewriting_outputs outputs_of(const struct task_set *set, const struct task_outputs *outputs, int64_t example)
{
	const struct rewriting_rows *rows = set->own;
	int64_t first = set->encoded.sequences[example];
	return (struct rewriting_outputs){.logits = task_output(outputs, example),
					  .tokens = rows->tokens + first,
					  .rows = (int32_t)labeled_tokens(&set->encoded, example),
					  .source = (int32_t)(rows->sources[example] - first)};
}

/* Computes the logits of an example's pointers, all those of a row at a time. */
struct pointing {
	const struct rewriting_outputs *outputs;
	float *keys;   /* [POINTERS][POINTER_SIZE][rows]: those of neighboring rows side by side, to compute several at once */
	float *logits; /* [rows] of one pointer of one row */
	float *others; /* likewise */
};

static void pointing_close(struct pointing *pointing)
{
	free(pointing->keys);
	free(pointing->logits);
	free(pointing->others);
}

/* To be closed even after a failure. */
static enum status pointing_open(struct pointing *out, const struct rewriting_outputs *o)
{
	int64_t rows = o->rows;
	*out = (struct pointing){.outputs = o};
	TRY(memory_new(&out->keys, POINTERS * POINTER_SIZE * rows, sizeof *out->keys, "pointers"));
	TRY(memory_new(&out->logits, rows, sizeof *out->logits, "pointers"));
	TRY(memory_new(&out->others, rows, sizeof *out->others, "pointers"));
	for (int64_t row = 0; row < rows; row++)
		for (int i = 0; i < POINTERS * POINTER_SIZE; i++)
			out->keys[i * rows + row] = o->logits[row * OUTPUTS + CLASSES +
							      (2 * (i / POINTER_SIZE) + 1) * POINTER_SIZE + i % POINTER_SIZE];
	return OK;
}

/* The logits for a row pointing to every row. Several keys at a time, so that the sums are loaded and stored less often. */
static void point(const struct pointing *pointing, int32_t row, int pointer, float *restrict out)
{
	const struct rewriting_outputs *o = pointing->outputs;
	const float *query = o->logits + (int64_t)row * OUTPUTS + CLASSES + 2 * pointer * POINTER_SIZE;
	const float *key = pointing->keys + (int64_t)pointer * POINTER_SIZE * o->rows;
	const float scale = 1 / sqrtf(POINTER_SIZE);
	int64_t rows = o->rows;
	memset(out, 0, (size_t)rows * sizeof *out);
	for (int i = 0; i < POINTER_SIZE; i += 4, key += 4 * rows) {
		float a = scale * query[i], b = scale * query[i + 1], c = scale * query[i + 2], d = scale * query[i + 3];
		for (int64_t at = 0; at < rows; at++)
			out[at] += a * key[at] + b * key[rows + at] + c * key[2 * rows + at] + d * key[3 * rows + at];
	}
}

/* Finds the best run of tokens within one text, or none if pointing to [CLS] twice is better. */
static void best_run(struct pointing *pointing, int32_t row, struct edit *out)
{
	const struct rewriting_outputs *o = pointing->outputs;
	const float *begins = pointing->logits, *ends = pointing->others;
	point(pointing, row, POINTER_FIRST, pointing->logits);
	point(pointing, row, POINTER_LAST, pointing->others);
	float best = begins[0] + ends[0], before = 0;
	int32_t first = -1;
	out->first = out->last = -1;
	for (int32_t at = 1; at < o->rows; at++) {
		if (!o->tokens[at].text) {
			first = -1;
			continue;
		}
		if (first < 0 || begins[at] > before) {
			first = at;
			before = begins[at];
		}
		if (before + ends[at] > best) {
			best = before + ends[at];
			out->first = first;
			out->last = at;
		}
	}
}

/* Decodes the edits of an example, [rows - source] of them, to be freed. */
static enum status decode(const struct rewriting_outputs *o, struct edit **out)
{
	int32_t count = o->rows - o->source;
	struct pointing pointing;
	enum status status;
	TRY_GOTO(pointing_open(&pointing, o), done);
	TRY_GOTO(memory_new(out, count, sizeof **out, "edits"), done);
	for (int32_t i = 0; i < count; i++) {
		const float *classes = o->logits + (int64_t)(o->source + i) * OUTPUTS;
		(*out)[i].deleted = i + 1 < count && classes[CLASS_DELETE] > classes[CLASS_KEEP];
		best_run(&pointing, o->source + i, &(*out)[i]);
	}
done:
	pointing_close(&pointing);
	return status;
}

/* Puts the rewritten text of an example into an empty buffer. */
static enum status rewrite(const struct task_set *set, const struct task_outputs *outputs, int64_t example, struct buffer *out)
{
	struct rewriting_outputs o = outputs_of(set, outputs, example);
	struct edit *edits = NULL;
	TRY(decode(&o, &edits));
	enum status status = edits_apply(set->examples.examples[example].text, o.tokens + o.source, o.rows - o.source - 1, edits,
					 o.tokens, out, NULL);
	free(edits);
	return status;
}

/* The rewritten texts of a set. */
struct rewritten {
	const char **texts; /* [examples] */
	struct string_store store;
};

static void rewritten_release(struct rewritten *rewritten)
{
	string_store_release(&rewritten->store);
	free(rewritten->texts);
}

static enum status rewrite_all(const struct task_set *set, const struct task_outputs *outputs, struct rewritten *out)
{
	struct buffer text = {0};
	enum status status;
	*out = (struct rewritten){0};
	TRY_GOTO(memory_new(&out->texts, outputs->count, sizeof *out->texts, "rewritten texts"), done);
	for (int64_t i = 0; i < outputs->count && status == OK; i++) {
		buffer_clear(&text);
		status = rewrite(set, outputs, i, &text);
		if (status == OK)
			status = string_store_copy(&out->store, buffer_string(&text), text.size, &out->texts[i]);
	}
done:
	buffer_release(&text);
	return status;
}

/* ---- Scores and results ---- */

/* Measures texts for the examples that have targets; texts NULL: measures the sources. */
static enum status measure_set(const struct task_set *set, const char *const *texts, struct measures *out)
{
	const struct rewriting_rows *rows = set->own;
	const struct example_text *examples = set->examples.examples;
	const char **own = NULL, **targets = NULL;
	int64_t count = 0;
	enum status status;
	TRY_GOTO(memory_new(&own, set->examples.count, sizeof *own, "texts"), done);
	TRY_GOTO(memory_new(&targets, set->examples.count, sizeof *targets, "texts"), done);
	for (int64_t i = 0; i < set->examples.count; i++) {
		if (!examples[i].label)
			continue;
		own[count] = texts ? texts[i] : examples[i].text;
		targets[count++] = examples[i].label;
	}
	status = measure_texts(own, targets, count, rows->units, texts ? TEXTS_PREDICTED : TEXTS_COPIED, out);
done:
	free(own);
	free(targets);
	return status;
}

/* The measures of leaving every text unchanged: copy_bleu_4 and so on. */
static enum status rewriting_baseline(const struct task_state *state, const struct task_set *train, const struct task_set *set,
				      struct measures *out)
{
	(void)state;
	(void)train;
	return measure_set(set, NULL, out);
}

static enum status rewriting_score(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				   struct measures *out)
{
	struct rewritten rewritten;
	enum status status = rewrite_all(set, outputs, &rewritten);
	if (status == OK)
		status = measure_set(set, rewritten.texts, out);
	if (status == OK)
		status = rewriting_baseline(state, NULL, set, out);
	rewritten_release(&rewritten);
	return status;
}

/* Appends a text as a field of a table, on a single line. */
static void put_field(struct buffer *out, const char *text)
{
	for (; *text; text++)
		buffer_char(out, *text == '\t' || *text == '\n' || *text == '\r' ? ' ' : *text);
}

/* Writes predict.txt, with one text per line, and rewritten.tsv, with sources and, if there are any, targets. */
static enum status rewriting_write(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				   const char *folder)
{
	char path[PATH_BYTES];
	struct buffer lines = {0}, table = {0};
	struct rewritten rewritten;
	(void)state;
	enum status status = rewrite_all(set, outputs, &rewritten);
	TRY_GOTO(status, done);
	buffer_format(&table, "source\trewritten%s\n", set->has_labels ? "\ttarget" : "");
	for (int64_t i = 0; i < outputs->count; i++) {
		const struct example_text *example = &set->examples.examples[i];
		put_field(&lines, rewritten.texts[i]);
		buffer_char(&lines, '\n');
		put_field(&table, example->text);
		buffer_char(&table, '\t');
		put_field(&table, rewritten.texts[i]);
		if (set->has_labels)
			buffer_char(&table, '\t');
		if (set->has_labels && example->label)
			put_field(&table, example->label);
		buffer_char(&table, '\n');
	}
	TRY_GOTO(buffer_status(&lines), done);
	TRY_GOTO(buffer_status(&table), done);
	TRY_GOTO(path_join(path, folder, "predict.txt"), done);
	TRY_GOTO(owned_file_write(path, lines.data, lines.size), done);
	TRY_GOTO(path_join(path, folder, "rewritten.tsv"), done);
	status = owned_file_write(path, table.data, table.size);
done:
	rewritten_release(&rewritten);
	buffer_release(&lines);
	buffer_release(&table);
	return status;
}

static bool same_space(char a, char b)
{
	return a == b && (a == ' ' || a == '\t' || a == '\n' || a == '\r');
}

/* Lists the edits for users: which characters of the source are replaced by which text. They are what lies between tokens that
 * stay, which end at `ends` in the text, without white space that stays as well. */
static void put_edits(struct json_writer *writer, const char *source, const struct rewriting_outputs *o,
		      const struct buffer *rewritten, const size_t *ends)
{
	const struct edit_token *tokens = o->tokens + o->source;
	const char *text = buffer_string(rewritten);
	int32_t count = o->rows - o->source - 1;
	struct utf8_place place = {.text = source};
	size_t from = 0, begin = 0; /* in the source, in the text */
	json_open(writer, "edits", '[');
	for (int32_t i = 0; i <= count; i++) {
		bool last = i == count;
		if (!last && ends[i] == 0)
			continue;
		size_t to = last ? strlen(source) : tokens[i].begin;
		size_t end = last ? rewritten->size : ends[i] - (tokens[i].end - tokens[i].begin);
		size_t shared = to < from ? from - to : 0; /* by two tokens */
		to += shared;
		end += shared;
		for (; from < to && begin < end && same_space(source[from], text[begin]); from++)
			begin++;
		for (; from < to && begin < end && same_space(source[to - 1], text[end - 1]); to--)
			end--;
		if (to - from != end - begin || memcmp(source + from, text + begin, to - from) != 0) {
			json_open(writer, NULL, '{');
			json_put_integer(writer, "start", (int64_t)utf8_place_at(&place, from));
			json_put_integer(writer, "end", (int64_t)utf8_place_at(&place, to));
			json_put_text(writer, "text", text + begin, end - begin);
			json_close(writer);
		}
		from = last ? 0 : tokens[i].end;
		begin = last ? 0 : ends[i];
	}
	json_close(writer);
}

static enum status rewriting_put(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 int64_t number, struct buffer *out)
{
	const struct example_text *example = &set->examples.examples[number];
	struct rewriting_outputs o = outputs_of(set, outputs, number);
	struct json_writer writer = {.out = out};
	struct buffer text = {0};
	struct edit *edits = NULL;
	size_t *ends = NULL;
	int32_t count = o.rows - o.source - 1;
	enum status status;
	(void)state;
	TRY_GOTO(decode(&o, &edits), done);
	TRY_GOTO(memory_new(&ends, count, sizeof *ends, "edits"), done);
	TRY_GOTO(edits_apply(example->text, o.tokens + o.source, count, edits, o.tokens, &text, ends), done);
	json_open(&writer, NULL, '{');
	example_put_id(&set->examples, number, &writer);
	json_put_text(&writer, "text", buffer_string(&text), text.size);
	put_edits(&writer, example->text, &o, &text, ends);
	json_close(&writer);
	status = buffer_status(out);
done:
	buffer_release(&text);
	free(edits);
	free(ends);
	return status;
}

/* The new text. */
static enum status rewriting_put_tsv(const struct task_state *state, const struct task_set *set,
				     const struct task_outputs *outputs, int64_t number, struct buffer *out)
{
	struct buffer text = {0};
	(void)state;
	enum status status = rewrite(set, outputs, number, &text);
	if (status == OK)
		results_put_cell(out, buffer_string(&text));
	buffer_release(&text);
	return status == OK ? buffer_status(out) : status;
}

/* -log p of the edits that produce the target, as far as they are known. */
static enum status edits_loss(const struct task_set *set, const struct task_outputs *outputs, int64_t example, double *out)
{
	struct rewriting_outputs o = outputs_of(set, outputs, example);
	const struct labeled_items *items = &set->encoded.items[0];
	struct pointing pointing;
	double *shares = NULL;
	enum status status;
	*out = 0;
	TRY_GOTO(pointing_open(&pointing, &o), done);
	TRY_GOTO(memory_new(&shares, o.rows > CLASSES ? o.rows : CLASSES, sizeof *shares, "probabilities"), done);
	for (int64_t i = items->starts[example]; i < items->starts[example + 1]; i++) {
		int32_t row = items->rows[i];
		for (int k = 0; k < LABELS; k++) {
			int32_t label = items->classes[i * LABELS + k];
			if (label < 0)
				continue;
			if (k > 0)
				point(&pointing, row, k - 1, pointing.logits);
			task_probabilities(k == 0 ? o.logits + (int64_t)row * OUTPUTS : pointing.logits,
					   k == 0 ? CLASSES : o.rows, shares);
			*out -= log(shares[label]);
		}
	}
done:
	pointing_close(&pointing);
	free(shares);
	return status;
}

static enum status rewriting_examine(const struct task_state *state, const struct task_set *set,
				     const struct task_outputs *outputs, struct task_answer_reader reader)
{
	struct buffer context = {0};
	struct rewritten rewritten;
	(void)state;
	enum status status = rewrite_all(set, outputs, &rewritten);
	for (int64_t i = 0; i < outputs->count && status == OK; i++) {
		const struct example_text *example = &set->examples.examples[i];
		double loss;
		if (!example->label)
			continue;
		buffer_clear(&context);
		for (int32_t k = 0; k < context_count(example); k++)
			buffer_format(&context, "%s%s", k > 0 ? " | " : "", context_of(set, example, k));
		TRY_GOTO(buffer_status(&context), done);
		TRY_GOTO(edits_loss(set, outputs, i, &loss), done);
		status = reader.take(reader.context,
				     &(struct task_answer){.number = i + 1,
							   .text = example->text,
							   .pair = context.size > 0 ? buffer_string(&context) : NULL,
							   .right = example->label,
							   .predicted = rewritten.texts[i],
							   .loss = loss,
							   .wrong = strcmp(rewritten.texts[i], example->label) != 0});
	}
done:
	buffer_release(&context);
	rewritten_release(&rewritten);
	return status;
}

const struct task task_rewriting = {
	.name = "rewriting",
	.summary = "a text rewritten using what was said before it, by keeping, deleting, and copying tokens",
	.architecture = "BertForTextRewriting",
	.input = TASK_INPUT_DIALOGUE,
	.target = TARGET_PARTS,
	.decides = "bleu_4",
	.view = VIEW_TEXTS,
	.streams = true,
	.read = task_read_tables,
	.take = task_take_texts,
	.encode = rewriting_encode,
	.heads = rewriting_heads,
	.score = rewriting_score,
	.baseline = rewriting_baseline,
	.write = rewriting_write,
	.put = rewriting_put,
	.put_tsv = rewriting_put_tsv,
	.examine = rewriting_examine,
	.close_set = rewriting_close,
};
