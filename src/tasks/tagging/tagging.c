/* A tag for each word: entities in any scheme, or parts of speech (tasks/tagging/tag_text.h). A word's tag is predicted from its
 * first piece: BertForTokenClassification.
 *
 * Entities are learned and predicted as IOB2, and written in the scheme of the training files. A sentence too long for one
 * sequence becomes several windows that overlap by half; each word counts once, in the window where it is farthest from both
 * ends. A window is an example, and since windows and their words are in the order of the text, item i of the head is word i
 * among those that have pieces. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "tasks/results.h"
#include "tasks/tagging/tag_text.h"
#include "text/utf8.h"

static void tagging_close(struct task_set *set)
{
	tag_text_free(set->own);
	set->own = NULL;
}

/* These files have no header: one would be a word, and its tag a class of its own. */
static void warn_of_headers(const struct task_state *state, const struct tag_text *text)
{
	const struct label_set *labels = &state->labels;
	for (int64_t i = 0; i < text->file_count && state->settings.given.count == 0; i++) {
		int64_t word = text->first_words[i];
		const struct conll *file = &text->files[i];
		if (!file->word_lines || word == text->first_words[i + 1] || file->lines[0] > 1 ||
		    text->word_count < 2 * labels->count)
			continue;
		const char *tag = text->tags[word];
		if (labels->labels[label_set_find(labels, tag)].count == 1)
			log_warning("'%s', line 1: no other word has the tag '%.100s', which becomes a class; if the line is a "
				    "header, delete it",
				    file->name, tag);
	}
}

static enum status tagging_read(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count)
{
	struct tag_text *text;
	TRY(tag_text_read(&text, state, set->use, paths, count));
	set->own = text;
	set->has_labels = text->tags != NULL;
	if (set->use != TASK_TRAIN)
		return OK;
	/* By number, as given by options: the columns of files of tagged words have no names. */
	set->examples.columns = state->settings.columns;
	for (int64_t w = 0; w < text->word_count; w++) {
		const char *file;
		int64_t line;
		tag_text_place(text, w, &file, &line);
		TRY(label_set_add(&state->labels, text->tags[w], file, line));
	}
	warn_of_headers(state, text);
	/* Words beyond the sentences that are used do not count. */
	const int64_t most = state->settings.most;
	for (int64_t w = most > 0 && most < text->sentence_count ? text->starts[most] : text->word_count; w < text->word_count;
	     w++)
		label_set_drop_use(&state->labels, text->tags[w]);
	return task_order_labels(state, text->sentence_count);
}

static enum status tagging_take(struct task_state *state, struct task_set *set, const struct task_text *texts, int64_t count)
{
	struct tag_text *text;
	TRY(tag_text_take(&text, state, texts, count));
	set->use = TASK_PREDICT;
	set->own = text;
	return OK;
}

/* ---- Encoding ---- */

/* Makes the labels' names with the prefixes that scores know (B, I, E, S), and chooses the tag of words without pieces. */
static enum status make_names(const struct task_state *state, struct tag_text *text)
{
	const struct label_set *labels = &state->labels;
	struct tag_form form;
	struct buffer name = {0};
	enum status status = OK;
	int64_t frequent = 0;
	TRY(tags_of_labels(state, &form));
	TRY(memory_grow(&text->names, &text->name_room, labels->count + 1, sizeof *text->names, "labels"));
	text->name_count = (int32_t)labels->count;
	for (int64_t i = 0; i < labels->count && status == OK; i++) {
		struct tag tag;
		frequent = labels->labels[i].count > labels->labels[frequent].count ? i : frequent;
		text->names[i] = labels->labels[i].name;
		if (form.scheme == TAGS_PLAIN)
			continue;
		if (!tag_parse(text->names[i], form, &tag)) { /* from --labels: no tag of the training file's form */
			text->names[i] = "O";
			continue;
		}
		buffer_clear(&name);
		tag_write(&name, tag, (struct tag_form){TAGS_BIOES, '-'});
		status = buffer_status(&name);
		if (status == OK)
			status = string_store_copy(&text->strings, buffer_string(&name), name.size, &text->names[i]);
	}
	buffer_release(&name);
	text->outside = (int32_t)label_set_find(labels, "O");
	if (text->outside < 0 && form.scheme == TAGS_PLAIN)
		text->outside = (int32_t)frequent;
	if (text->outside < 0) {
		text->outside = text->name_count++;
		text->names[text->outside] = "O";
	}
	return status;
}

/* Does training have the entity's type, perhaps with another prefix? */
static bool knows_type(const struct task_state *state, const char *name, struct tag_form form)
{
	struct tag tag, other;
	if (form.scheme == TAGS_PLAIN || !tag_parse(name, form, &tag))
		return false;
	for (int64_t i = 0; i < state->labels.count; i++)
		if (tag_parse(state->labels.labels[i].name, form, &other) && strcmp(other.type, tag.type) == 0)
			return true;
	return tag.prefix == 'O';
}

/* Adds the name of a tag that is not a label but must be counted in scores. */
static enum status add_name(struct tag_text *text, const char *name, struct tag_form form, int32_t *out)
{
	struct tag tag;
	struct buffer written = {0};
	(void)tag_parse(name, form, &tag);
	tag_write(&written, tag, (struct tag_form){TAGS_BIOES, '-'});
	enum status status = buffer_status(&written);
	for (*out = 0; status == OK && *out < text->name_count; ++*out)
		if (strcmp(text->names[*out], buffer_string(&written)) == 0)
			goto done;
	if (status == OK)
		status = memory_grow(&text->names, &text->name_room, text->name_count + 1, sizeof *text->names, "labels");
	if (status == OK)
		status = string_store_copy(&text->strings, buffer_string(&written), written.size, &text->names[text->name_count]);
	if (status == OK)
		*out = text->name_count++;
done:
	buffer_release(&written);
	return status;
}

/* Finds the index of each word's own tag. A tag that did not occur in training, although its entity type did, cannot be
 * predicted: it counts as wrong in scores, and is not part of the loss. */
static enum status find_gold(const struct task_state *state, struct tag_text *text)
{
	struct tag_form form;
	const char *file = NULL;
	char number[FORMAT_BYTES];
	int64_t line = 0, unknown = 0;
	TRY(tags_of_labels(state, &form));
	TRY(memory_new(&text->gold, text->word_count, sizeof *text->gold, "tags"));
	for (int64_t w = 0; w < text->word_count; w++) {
		int64_t id = label_set_find(&state->labels, text->tags[w]);
		text->gold[w] = (int32_t)id;
		if (id >= 0)
			continue;
		if (unknown == 0 || !knows_type(state, text->tags[w], form))
			tag_text_place(text, w, &file, &line);
		if (!knows_type(state, text->tags[w], form))
			return label_set_id(&state->labels, text->tags[w], file, line, &id);
		TRY(add_name(text, text->tags[w], form, &text->gold[w]));
		unknown++;
	}
	if (unknown > 0)
		log_warning("%s not occur in training, the first in '%s', line %lld: they count as errors in scores",
			    format_counted(number, unknown, "tag does", "tags do"), file, (long long)line);
	return OK;
}

/* The pieces of a sentence. */
struct pieces {
	int32_t *ids;    /* [count] */
	int64_t *firsts; /* [words] first piece of each word; -1: it has none */
	int64_t count, capacity, first_capacity;
	int32_t *window; /* scratch memory for a sequence */
	struct tokens tokens;
	struct buffer prefixed;
	struct tag_cutter cutter; /* of running text */
};

static void pieces_release(struct pieces *pieces)
{
	free(pieces->ids);
	free(pieces->firsts);
	free(pieces->window);
	tokens_release(&pieces->tokens);
	buffer_release(&pieces->prefixed);
	tag_cutter_release(&pieces->cutter);
}

/* Encodes a word as it is encoded within a text, where some tokenizers see the space before it. */
static enum status encode_word(const struct tokenizer *tokenizer, const char *word, struct pieces *pieces)
{
	const char *prefix = tokenizer_word_prefix(tokenizer);
	tokens_clear(&pieces->tokens);
	if (!prefix[0] || word[0] == prefix[0])
		return tokenizer_encode(tokenizer, word, strlen(word), &pieces->tokens);
	buffer_clear(&pieces->prefixed);
	buffer_text(&pieces->prefixed, prefix);
	buffer_text(&pieces->prefixed, word);
	TRY(buffer_status(&pieces->prefixed));
	return tokenizer_encode(tokenizer, pieces->prefixed.data, pieces->prefixed.size, &pieces->tokens);
}

static enum status cut_words(const struct tokenizer *tokenizer, const char *const *words, int64_t count, struct pieces *out)
{
	out->count = 0;
	TRY(memory_grow(&out->firsts, &out->first_capacity, count, sizeof *out->firsts, "words"));
	for (int64_t w = 0; w < count; w++) {
		TRY(encode_word(tokenizer, words[w], out));
		TRY(memory_grow(&out->ids, &out->capacity, out->count + out->tokens.count, sizeof *out->ids, "pieces of words"));
		out->firsts[w] = out->tokens.count > 0 ? out->count : -1;
		for (int64_t i = 0; i < out->tokens.count; i++)
			out->ids[out->count++] = out->tokens.ids[i];
	}
	return OK;
}

/* The windows of a sentence; the last one ends where the sentence does. */
struct windows {
	int64_t count, room, step, pieces;
};

static struct windows windows_of(int64_t pieces, int64_t room)
{
	struct windows w = {.count = 1, .room = room, .step = room > 1 ? room / 2 : 1, .pieces = pieces};
	if (pieces > room)
		w.count += (pieces - room + w.step - 1) / w.step;
	return w;
}

static int64_t window_start(const struct windows *w, int64_t number)
{
	int64_t last = w->pieces > w->room ? w->pieces - w->room : 0, start = number * w->step;
	return start < last ? start : last;
}

/* Number of pieces between this one and the nearer end of the window; negative outside it. */
static int64_t context(const struct windows *w, int64_t number, int64_t piece)
{
	int64_t left = piece - window_start(w, number), right = w->room - 1 - left;
	return left < right ? left : right;
}

/* Encodes a window with those words, from *word on, for which it has at least as much context as the next window. */
static enum status encode_window(struct task_state *state, struct task_set *set, struct pieces *pieces,
				 const struct windows *windows, int64_t number, int64_t first_word, int64_t words, int64_t *word)
{
	struct tag_text *text = set->own;
	const struct vocab *vocab = tokenizer_vocab(state->settings.tokenizer);
	int64_t start = window_start(windows, number), left = windows->pieces - start;
	int64_t count = left < windows->room ? left : windows->room;
	bool begun = false;
	int32_t size = template_join(&vocab->single, pieces->ids + start, count, NULL, 0, pieces->window);
	for (; *word < words; ++*word) {
		int64_t w = first_word + *word, piece = pieces->firsts[*word];
		if (piece < 0)
			continue;
		if (number + 1 < windows->count && context(windows, number + 1, piece) > context(windows, number, piece))
			return OK;
		if (!begun) {
			TRY(labeled_begin(&set->encoded));
			TRY(labeled_sequence(&set->encoded, pieces->window, size, template_type_0(&vocab->single, count, 0)));
			begun = true;
		}
		int32_t row = (int32_t)(piece - start) + vocab->single.before, id = text->gold ? text->gold[w] : -1;
		if (id >= state->labels.count)
			id = -1;
		float weight = id < 0 ? 0 : state->label_weights && set->use == TASK_TRAIN ? state->label_weights[id] : 1;
		text->items[w] = set->encoded.items[0].count;
		TRY(labeled_item(&set->encoded, 0, &row, &id, NULL, weight));
	}
	return OK;
}

/* The same for a text from which the words were cut: it is encoded as a whole. */
static enum status cut_text(const char *text, int64_t words, struct pieces *out)
{
	struct tag_cutter *cutter = &out->cutter;
	TRY(tag_words_cut(cutter, text, strlen(text)));
	BUG_IF(cutter->count != words);
	out->count = cutter->tokens.count;
	TRY(memory_grow(&out->firsts, &out->first_capacity, words, sizeof *out->firsts, "words"));
	TRY(memory_grow(&out->ids, &out->capacity, out->count, sizeof *out->ids, "pieces of words"));
	for (int64_t w = 0; w < words; w++)
		out->firsts[w] = cutter->words[w].first;
	if (out->count > 0)
		memcpy(out->ids, cutter->tokens.ids, (size_t)out->count * sizeof *out->ids);
	return OK;
}

static enum status cut_sentence(const struct tokenizer *tokenizer, const struct tag_text *text, int64_t sentence,
				struct pieces *out)
{
	int64_t first = text->starts[sentence], words = text->starts[sentence + 1] - first;
	if (text->running[sentence] && out->cutter.kind == WORDS_TOKENS)
		return cut_text(text->texts[sentence], words, out);
	return cut_words(tokenizer, text->words + first, words, out);
}

static enum status encode_sentences(struct task_state *state, struct task_set *set, struct pieces *pieces)
{
	struct tag_text *text = set->own;
	int64_t cut = 0,
		room = state->settings.max_seq_length - template_size(&tokenizer_vocab(state->settings.tokenizer)->single);
	BUG_IF(room < 1);
	for (int64_t s = 0; s < text->sentence_count; s++) {
		int64_t first = text->starts[s], words = text->starts[s + 1] - first, word = 0;
		TRY(cut_sentence(state->settings.tokenizer, text, s, pieces));
		struct windows windows = windows_of(pieces->count, room);
		for (int64_t i = 0; i < windows.count && pieces->count > 0; i++)
			TRY(encode_window(state, set, pieces, &windows, i, first, words, &word));
		cut += windows.count > 1;
	}
	char count[FORMAT_BYTES];
	if (cut > 0 && !state->settings.quiet)
		log_note("%lld of %s %s longer than %d tokens and %s read in windows that overlap by half", (long long)cut,
			 format_counted(count, text->sentence_count, "sentence", "sentences"), cut == 1 ? "is" : "are",
			 state->settings.max_seq_length, cut == 1 ? "was" : "were");
	return OK;
}

static enum status tagging_encode(struct task_state *state, struct task_set *set)
{
	struct tag_text *text = set->own;
	struct pieces pieces = {.cutter = tagging_cutter(state)};
	TRY(make_names(state, text));
	if (set->has_labels)
		TRY(find_gold(state, text));
	TRY(memory_new(&text->items, text->word_count, sizeof *text->items, "words"));
	for (int64_t w = 0; w < text->word_count; w++)
		text->items[w] = -1;
	TRY(memory_new(&pieces.window, state->settings.max_seq_length, sizeof *pieces.window, "a window's tokens"));
	labeled_form(&set->encoded, 0, 1, 1, false);
	enum status status = encode_sentences(state, set, &pieces);
	pieces_release(&pieces);
	set->answer_count = text->sentence_count;
	return status;
}

static void tagging_heads(const struct task_state *state, struct model_heads *out)
{
	*out = (struct model_heads){.architecture = "BertForTokenClassification", .count = 1};
	out->head[0] = (struct head){
		.input = INPUT_CHOSEN_ROWS,
		.drops = true,
		.outputs = (int32_t)state->labels.count,
		.loss = LOSS_CLASSES,
		.coefficient = 1,
		.name = "classifier",
	};
}

/* ---- Scores ---- */

static const float *logits_of(const struct task_state *state, const struct tag_text *text, const struct task_outputs *outputs,
			      int64_t word)
{
	return text->items[word] < 0 ? NULL : outputs->values + text->items[word] * state->labels.count;
}

/* The index of a word's predicted tag in `names`. */
static int32_t predicted_tag(const struct task_state *state, const struct tag_text *text, const struct task_outputs *outputs,
			     int64_t word)
{
	const float *logits = logits_of(state, text, outputs, word);
	return logits ? task_best(logits, state->labels.count) : text->outside;
}

static enum status predict_all(const struct task_state *state, const struct tag_text *text, const struct task_outputs *outputs,
			       int32_t **out)
{
	TRY(memory_new(out, text->word_count, sizeof **out, "predictions"));
	for (int64_t w = 0; w < text->word_count; w++)
		(*out)[w] = predicted_tag(state, text, outputs, w);
	return OK;
}

/* Tags without prefixes are classes of words. */
static enum status score_plain_tags(const struct tag_text *text, const int32_t *predicted, struct class_scores *out)
{
	struct confusion confusion = {0};
	enum status status;
	TRY_GOTO(memory_new(&out->names, text->name_count, sizeof *out->names, "scores of tags"), done);
	TRY_GOTO(memory_new(&out->scores, text->name_count, sizeof *out->scores, "scores of tags"), done);
	TRY_GOTO(confusion_make(&confusion, text->name_count, text->gold, predicted, text->word_count), done);
	for (int32_t i = 0; i < text->name_count; i++) {
		const struct class_score score = confusion_class(&confusion, i);
		if (score.support + score.predicted == 0)
			continue;
		out->names[out->count] = text->names[i];
		out->scores[out->count++] = score;
	}
done:
	confusion_release(&confusion);
	if (status != OK)
		class_scores_release(out);
	return status;
}

static enum status measure_tags(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				struct class_scores *types, struct measures *out)
{
	const struct tag_text *text = set->own;
	struct tag_form form;
	int32_t *predicted;
	int64_t right = 0;
	enum status status = OK;
	TRY(tags_of_labels(state, &form));
	TRY(predict_all(state, text, outputs, &predicted));
	if (form.scheme != TAGS_PLAIN) {
		const struct tagged tagged = {.gold = text->gold,
					      .predicted = predicted,
					      .starts = text->starts,
					      .sentences = text->sentence_count,
					      .names = text->names,
					      .tags = text->name_count};
		status = measure_entities(&tagged, types, out);
	} else {
		for (int64_t w = 0; w < text->word_count; w++)
			right += predicted[w] == text->gold[w];
		measures_add(out, &(struct measure){.name = "accuracy",
						    .unit = UNIT_SHARE,
						    .direction = DIRECTION_HIGHER,
						    .value = (double)right / (double)text->word_count});
		if (types)
			status = score_plain_tags(text, predicted, types);
	}
	free(predicted);
	return status;
}

static enum status tagging_score(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 struct measures *out)
{
	return measure_tags(state, set, outputs, NULL, out);
}

static enum status tagging_score_classes(const struct task_state *state, const struct task_set *set,
					 const struct task_outputs *outputs, struct class_scores *out)
{
	struct measures measures = {0};
	*out = (struct class_scores){.count = 0};
	return measure_tags(state, set, outputs, out, &measures);
}

static enum status tagging_baseline(const struct task_state *state, const struct task_set *train, const struct task_set *set,
				    struct measures *out)
{
	(void)state;
	const struct tag_text *from = train->own, *text = set->own;
	return from->gold && text->gold ? tag_baseline(from, text, out) : OK;
}

/* ---- Results ---- */

/* Reads the predicted tags of a sentence. */
static void read_tags(const struct task_state *state, const struct tag_text *text, const struct task_outputs *outputs,
		      int64_t sentence, struct tag *out)
{
	for (int64_t w = text->starts[sentence]; w < text->starts[sentence + 1]; w++) {
		/* Names are in the form of BIOES, which includes IOB2. */
		const char *name = text->names[predicted_tag(state, text, outputs, w)];
		bool known = tag_parse(name, (struct tag_form){TAGS_BIOES, '-'}, out + (w - text->starts[sentence]));
		BUG_IF(!known);
	}
}

/* Puts the predicted tags of a sentence into `out`, in the form of its file; the strings are in `store`. */
static enum status write_tags(const struct task_state *state, const struct tag_text *text, const struct task_outputs *outputs,
			      int64_t sentence, struct string_store *store, const char **out)
{
	int64_t first = text->starts[sentence], count = text->starts[sentence + 1] - first;
	struct tag_form form;
	struct tag *tags;
	struct buffer name = {0};
	enum status status = OK;
	TRY(tags_of_files(state, &form));
	if (form.scheme == TAGS_PLAIN) {
		for (int64_t i = 0; i < count; i++)
			out[i] = text->names[predicted_tag(state, text, outputs, first + i)];
		return OK;
	}
	TRY(memory_new(&tags, count, sizeof *tags, "tags"));
	read_tags(state, text, outputs, sentence, tags);
	tags_convert(tags, count, form.scheme, tags);
	for (int64_t i = 0; i < count && status == OK; i++) {
		buffer_clear(&name);
		tag_write(&name, tags[i], form);
		status = buffer_status(&name);
		if (status == OK)
			status = string_store_copy(store, buffer_string(&name), name.size, &out[i]);
	}
	buffer_release(&name);
	free(tags);
	return status;
}

static enum status tagging_write(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 const char *folder)
{
	const struct tag_text *text = set->own;
	struct string_store store = {0};
	const char **tags;
	enum status status = OK;
	TRY(memory_new(&tags, text->word_count, sizeof *tags, "results"));
	for (int64_t s = 0; s < text->sentence_count; s++)
		TRY_GOTO(write_tags(state, text, outputs, s, &store, tags + text->starts[s]), done);
	for (int64_t f = 0; f < text->file_count; f++) {
		char path[PATH_BYTES], name[48] = "predictions.txt";
		if (f > 0)
			snprintf(name, sizeof name, "predictions_%lld.txt", (long long)f + 1);
		TRY_GOTO(path_join(path, folder, name), done);
		TRY_GOTO(results_write_tags(path, &text->files[f], tags + text->first_words[f]), done);
	}
done:
	string_store_release(&store);
	free(tags);
	return status;
}

/* Mean probability of the tags of words [first, end) that have pieces. */
static enum status entity_score(const struct task_state *state, const struct tag_text *text, const struct task_outputs *outputs,
				int64_t first, int64_t end, double *out)
{
	double *shares, sum = 0;
	int64_t count = 0;
	TRY(memory_new(&shares, state->labels.count, sizeof *shares, "probabilities"));
	for (int64_t w = first; w < end; w++) {
		const float *logits = logits_of(state, text, outputs, w);
		if (!logits)
			continue;
		task_probabilities(logits, state->labels.count, shares);
		sum += shares[task_best(logits, state->labels.count)];
		count++;
	}
	free(shares);
	*out = sum / (double)count;
	return OK;
}

/* Names of an entity's JSON members: ours, and those of transformers' pipeline. */
struct entity_keys {
	const char *label, *text;
};
static const struct entity_keys own_keys = {"label", "text"}, pipeline_keys = {"entity_group", "word"};

/* `place` is in the sentence's text, at the end of the entity before this one. */
static enum status put_entity(const struct task_state *state, const struct tag_text *text, const struct task_outputs *outputs,
			      int64_t sentence, const struct tag_entity *entity, const struct entity_keys *keys,
			      struct utf8_place *place, struct json_writer *writer)
{
	int64_t first = text->starts[sentence] + entity->start, last = text->starts[sentence] + entity->end - 1;
	const char *line = text->texts[sentence];
	size_t begin = (size_t)text->begins[first], end = (size_t)text->begins[last] + strlen(text->words[last]);
	double score;
	TRY(entity_score(state, text, outputs, first, last + 1, &score));
	json_open(writer, NULL, '{');
	json_put_integer(writer, "start", (int64_t)utf8_place_at(place, begin));
	json_put_integer(writer, "end", (int64_t)utf8_place_at(place, end));
	json_put_string(writer, keys->label, entity->type);
	json_put_double(writer, "score", score);
	json_put_text(writer, keys->text, line + begin, end - begin);
	json_close(writer);
	return OK;
}

/* Puts the entities of a sentence into the open JSON list. */
static enum status put_entities(const struct task_state *state, const struct tag_text *text, const struct task_outputs *outputs,
				int64_t sentence, const struct entity_keys *keys, struct json_writer *writer)
{
	int64_t count = text->starts[sentence + 1] - text->starts[sentence];
	struct tag *tags = NULL;
	struct tag_entity *entities = NULL;
	struct utf8_place place = {.text = text->texts[sentence]};
	enum status status;
	TRY_GOTO(memory_new(&tags, count, sizeof *tags, "tags"), done);
	TRY_GOTO(memory_new(&entities, count, sizeof *entities, "entities"), done);
	read_tags(state, text, outputs, sentence, tags);
	int64_t found = tags_entities(tags, count, entities);
	for (int64_t i = 0; i < found; i++)
		TRY_GOTO(put_entity(state, text, outputs, sentence, &entities[i], keys, &place, writer), done);
	status = OK;
done:
	free(tags);
	free(entities);
	return status;
}

static enum status tagging_put(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			       int64_t sentence, struct buffer *out)
{
	const struct tag_text *text = set->own;
	int64_t count = text->starts[sentence + 1] - text->starts[sentence];
	struct json_writer writer = {.out = out};
	struct string_store store = {0};
	const char **tags = NULL;
	struct tag_form form;
	enum status status;
	TRY(tags_of_labels(state, &form));
	TRY(memory_new(&tags, count, sizeof *tags, "tags"));
	TRY_GOTO(write_tags(state, text, outputs, sentence, &store, tags), done);
	json_open(&writer, NULL, '{');
	if (sentence < text->id_count && text->ids[sentence])
		json_put_written(&writer, "id", text->ids[sentence]);
	json_open(&writer, "tags", '[');
	for (int64_t i = 0; i < count; i++)
		json_put_string(&writer, NULL, tags[i]);
	json_close(&writer);
	if (text->running[sentence]) {
		json_open(&writer, "words", '[');
		for (int64_t i = 0; i < count; i++)
			json_put_string(&writer, NULL, text->words[text->starts[sentence] + i]);
		json_close(&writer);
	}
	if (form.scheme != TAGS_PLAIN) {
		json_open(&writer, "entities", '[');
		TRY_GOTO(put_entities(state, text, outputs, sentence, &own_keys, &writer), done);
		json_close(&writer);
	}
	json_close(&writer);
	status = buffer_status(out);
done:
	string_store_release(&store);
	free(tags);
	return status;
}

/* A line for each word, with its tag; the line end of the answer is then an empty line after the sentence. */
static enum status tagging_put_tsv(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				   int64_t sentence, struct buffer *out)
{
	const struct tag_text *text = set->own;
	int64_t first = text->starts[sentence], count = text->starts[sentence + 1] - first;
	struct string_store store = {0};
	const char **tags = NULL;
	enum status status;
	TRY_GOTO(memory_new(&tags, count, sizeof *tags, "results"), done);
	TRY_GOTO(write_tags(state, text, outputs, sentence, &store, tags), done);
	for (int64_t i = 0; i < count; i++) {
		results_put_cell(out, text->words[first + i]);
		buffer_char(out, '\t');
		results_put_cell(out, tags[i]);
		buffer_char(out, '\n');
	}
	status = buffer_status(out);
done:
	string_store_release(&store);
	free(tags);
	return status;
}

/* As with aggregation_strategy="first", which also gives a word the tag of its first piece. */
static enum status tagging_put_pipeline(const struct task_state *state, const struct task_set *set,
					const struct task_outputs *outputs, int64_t sentence, struct buffer *out)
{
	const struct tag_text *text = set->own;
	struct json_writer writer = {.out = out};
	struct tag_form form;
	TRY(tags_of_labels(state, &form));
	if (form.scheme == TAGS_PLAIN)
		return error_hinted(
			error_set(ERR_USAGE,
				  "--format pipeline: these tags do not mark entities, which is what the pipeline prints"),
			"--format jsonl prints the tag of each word");
	json_open(&writer, NULL, '[');
	TRY(put_entities(state, text, outputs, sentence, &pipeline_keys, &writer));
	json_close(&writer);
	return buffer_status(out);
}

/* Lists the words whose predicted and gold tags differ, each with its tag from `tags`: "cell/B-Disease ...". */
static void put_differing(const struct tag_text *text, int64_t sentence, const int32_t *tags, const int32_t *predicted,
			  struct buffer *out)
{
	buffer_clear(out);
	for (int64_t w = text->starts[sentence]; w < text->starts[sentence + 1]; w++)
		if (text->gold[w] != predicted[w])
			buffer_format(out, "%s%s/%s", out->size > 0 ? " " : "", text->words[w], text->names[tags[w]]);
}

/* The loss of a sentence: the sum of -log p over its tags; tags that are not labels are left out. */
static double sentence_loss(const struct task_state *state, const struct tag_text *text, const struct task_outputs *outputs,
			    int64_t sentence, double *shares)
{
	double loss = 0;
	for (int64_t w = text->starts[sentence]; w < text->starts[sentence + 1]; w++) {
		const float *logits = logits_of(state, text, outputs, w);
		if (!logits || text->gold[w] >= state->labels.count)
			continue;
		task_probabilities(logits, state->labels.count, shares);
		loss -= log(shares[text->gold[w]]);
	}
	return loss;
}

/* The right and the predicted entities of a sentence, for people to look at. */
struct found {
	struct tag *tags;
	struct tag_entity *entities[2]; /* right, predicted */
	struct task_span *spans;
	int64_t counts[2], span_count;
	int64_t tag_room, entity_room[2], span_room;
};

static void found_release(struct found *found)
{
	free(found->tags);
	free(found->entities[0]);
	free(found->entities[1]);
	free(found->spans);
}

/* Is the entity among those of the other side? Both are in the order of the text. */
static bool has_entity(const struct found *found, int side, const struct tag_entity *entity)
{
	for (int64_t i = 0; i < found->counts[side]; i++) {
		const struct tag_entity *other = &found->entities[side][i];
		if (other->start == entity->start && other->end == entity->end && strcmp(other->type, entity->type) == 0)
			return true;
	}
	return false;
}

static enum status find_spans(const struct tag_text *text, int64_t sentence, const int32_t *const tags[2], struct found *out)
{
	int64_t first = text->starts[sentence], count = text->starts[sentence + 1] - first;
	out->span_count = 0;
	TRY(memory_grow(&out->tags, &out->tag_room, count, sizeof *out->tags, "tags"));
	for (int side = 0; side < 2; side++) {
		TRY(memory_grow(&out->entities[side], &out->entity_room[side], count, sizeof *out->entities[side], "entities"));
		for (int64_t i = 0; i < count; i++)
			(void)tag_parse(text->names[tags[side][first + i]], (struct tag_form){TAGS_BIOES, '-'}, &out->tags[i]);
		out->counts[side] = tags_entities(out->tags, count, out->entities[side]);
	}
	TRY(memory_grow(&out->spans, &out->span_room, out->counts[0] + out->counts[1] + 1, sizeof *out->spans, "entities"));
	for (int side = 0; side < 2; side++)
		for (int64_t i = 0; i < out->counts[side]; i++) {
			const struct tag_entity *entity = &out->entities[side][i];
			int64_t last = first + entity->end - 1;
			out->spans[out->span_count++] = (struct task_span){
				.begin = (size_t)text->begins[first + entity->start],
				.end = (size_t)text->begins[last] + strlen(text->words[last]),
				.label = entity->type,
				.predicted = side,
				.agrees = has_entity(out, 1 - side, entity),
			};
		}
	return OK;
}

static enum status tagging_examine(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				   struct task_answer_reader reader)
{
	const struct tag_text *text = set->own;
	struct buffer right = {0}, answer = {0};
	struct found found = {0};
	struct tag_form form;
	int32_t *predicted = NULL;
	double *shares = NULL;
	enum status status = OK;
	TRY(tags_of_labels(state, &form));
	TRY(predict_all(state, text, outputs, &predicted));
	TRY_GOTO(memory_new(&shares, state->labels.count, sizeof *shares, "probabilities"), done);
	for (int64_t s = 0; s < text->sentence_count && status == OK; s++) {
		put_differing(text, s, text->gold, predicted, &right);
		put_differing(text, s, predicted, predicted, &answer);
		TRY_GOTO(buffer_status(&right), done);
		TRY_GOTO(buffer_status(&answer), done);
		if (right.size > 0 && form.scheme != TAGS_PLAIN)
			TRY_GOTO(find_spans(text, s, (const int32_t *const[2]){text->gold, predicted}, &found), done);
		status =
			reader.take(reader.context, &(struct task_answer){.number = s + 1,
									  .text = text->texts[s],
									  .right = buffer_string(&right),
									  .predicted = buffer_string(&answer),
									  .spans = form.scheme == TAGS_PLAIN ? NULL : found.spans,
									  .span_count = found.span_count,
									  .loss = sentence_loss(state, text, outputs, s, shares),
									  .wrong = right.size > 0});
	}
done:
	buffer_release(&right);
	buffer_release(&answer);
	found_release(&found);
	free(shares);
	free(predicted);
	return status;
}

static int64_t tagging_keep(struct task_set *set, int64_t most)
{
	struct tag_text *text = set->own;
	int64_t all = text->sentence_count;
	tag_text_keep(text, most);
	return all;
}

/* ---- Its record ---- */

static const char *const word_kinds[] = {"tokens", "characters"};

static void tagging_put_record(const void *own, struct json_writer *writer)
{
	const struct tagging_settings *settings = own;
	const struct tag_form *tags = &settings->tags;
	const char separator[2] = {tags->separator, '\0'};
	if (!tags->separator)
		return;
	json_open(writer, "tags", '{');
	json_put_string(writer, "scheme", tag_scheme_name(tags->scheme));
	json_put_string(writer, "separator", separator);
	json_put_string(writer, "words", word_kinds[settings->words]);
	json_close(writer);
}

static enum status tagging_read_record(const struct json *record, const char *name, void *own)
{
	struct tagging_settings *settings = own;
	const struct json *tags = json_member(record, "tags");
	struct tag_form *form = &settings->tags;
	const char *scheme = "", *separator = "", *words = word_kinds[WORDS_TOKENS];
	if (!tags)
		return OK;
	TRY(json_get_string(tags, name, "scheme", &scheme));
	TRY(json_get_string(tags, name, "separator", &separator));
	if (!tag_scheme_find(scheme, &form->scheme))
		return error_set(ERR_DATA, "'%s': unknown tag scheme '%.40s'", name, scheme);
	if (strcmp(separator, "-") != 0 && strcmp(separator, "_") != 0)
		return error_set(ERR_DATA, "'%s': the separator of tags is '%.40s', not '-' or '_'", name, separator);
	form->separator = separator[0];
	TRY(json_get_string(tags, name, "words", &words));
	/* "spaced" and "ideographs", as older folders say, meant what is now the tokenizer's words. */
	static const char *const known[] = {"characters", "tokens", "spaced", "ideographs"};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(words, known[i]) == 0) {
			settings->words = i == 0 ? WORDS_CHARACTERS : WORDS_TOKENS;
			return OK;
		}
	return error_set(ERR_DATA, "'%s': unknown kind of words '%.40s'", name, words);
}

const struct task task_tagging = {
	.name = "tagging",
	.other_names = (const char *const[]){"ner", "pos", "token-classification", NULL},
	.summary = "a tag for each word: names and other entities, parts of speech",
	.architecture = "BertForTokenClassification",
	.input = TASK_INPUT_TEXT,
	.target = TARGET_PARTS,
	.decides = "f1",
	.view = VIEW_ENTITIES,
	.has_windows = true,
	.weighs_classes = true,
	.keep = tagging_keep,
	.read = tagging_read,
	.take = tagging_take,
	.encode = tagging_encode,
	.heads = tagging_heads,
	.score = tagging_score,
	.score_classes = tagging_score_classes,
	.baseline = tagging_baseline,
	.write = tagging_write,
	.put = tagging_put,
	.put_tsv = tagging_put_tsv,
	.examine = tagging_examine,
	.put_pipeline = tagging_put_pipeline,
	.close_set = tagging_close,
	.settings_bytes = sizeof(struct tagging_settings),
	.put_record = tagging_put_record,
	.read_record = tagging_read_record,
};
