/* Relations: how two mentions in a text are related. Mentions are enclosed in markers (tasks/mentions.h), which are read as text
 * or as entries of the vocabulary. The head is that of classification (BertForSequenceClassification), or it reads the
 * concatenated rows of both opening markers, as in Baldini Soares et al. 2019, for which transformers has no class. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "tasks/classification.h"
#include "tasks/relation.h"
#include "tasks/words_alone.h"

/* ---- Settings ---- */

#define ROW(member, value) OPTION_ROW(struct relation_settings, member, ROLE_RESULT, value)

/* clang-format off */
const struct option relation_rows[] = {
	{.help = "Relations"},
	{ROW(markers, "A,B,C,D"),
	 .help = "the markers before and after the first and the second mention; detected by default: << >> [[ ]], [E1] "
	 "[/E1] [E2] [/E2], <e1> </e1> <e2> </e2>"},
	{ROW(marker_tokens, "WHAT"), .fallback = "auto", .range = "auto|text|vocabulary",
	 .help = "read markers as text, or as entries of the vocabulary, using free rows ([unused...]) if necessary; auto: "
	 "entries if the vocabulary has them"},
	{ROW(relation_head, "WHAT"), .fallback = "cls", .range = "cls|markers",
	 .help = "what the head reads: [CLS], or both opening markers side by side (transformers has no class for such a model)"},
	{0},
};
/* clang-format on */

static struct relation_settings *own_of(const struct task_state *state)
{
	return state->own;
}

/* ---- Markers ---- */

/* The markers for training: as given, as in the first text with any, or the usual ones for positions in JSON. */
static enum status find_form(struct task_state *state, const struct example_set *set)
{
	struct relation_settings *own = own_of(state);
	if (own->markers)
		return mention_form_parse(own->markers, &own->form);
	for (int64_t i = 0; i < set->count; i++) {
		const struct mention_form *form =
			mentions_have_places(set, i) ? mention_form_usual() : mention_form_detect(set->examples[i].text);
		if (form) {
			own->form = *form;
			return OK;
		}
	}
	return error_hinted(
		error_set(ERR_DATA, "'%s': its texts have no marked mentions", set->examples[0].file),
		"a relation's texts have two mentions in << >> and [[ ]], in [E1] [/E1] and [E2] [/E2], or in markers that "
		"--markers names; or JSON lines say where they are");
}

static bool are_entries(const struct vocab *vocab, const struct mention_form *form)
{
	for (int i = 0; i < MENTION_MARKS; i++)
		if (vocab_find(vocab, form->marks[i], strlen(form->marks[i])) < 0)
			return false;
	return true;
}

/* Makes the markers entries of the vocabulary, taking unused ones if necessary. */
static enum status add_entries(struct task_state *state)
{
	const struct mention_form *form = &own_of(state)->form;
	for (int i = 0; i < MENTION_MARKS; i++) {
		int32_t id;
		enum status status = vocab_add_token(state->settings.vocab, form->marks[i], &id);
		if (status != OK) {
			error_hint("--marker_tokens text reads markers as ordinary text");
			return status;
		}
	}
	return OK;
}

/* Unless the user decides, markers are read as entries only if the vocabulary has them, since new entries are untrained. */
static enum status settle_tokens(struct task_state *state)
{
	struct relation_settings *own = own_of(state);
	const struct vocab *vocab = tokenizer_vocab(state->settings.tokenizer);
	struct buffer text = {0};
	bool were_entries = are_entries(vocab, &own->form);
	if (own->marker_tokens == MARKERS_AUTO)
		own->marker_tokens = were_entries ? MARKERS_VOCABULARY : MARKERS_TEXT;
	if (own->marker_tokens == MARKERS_VOCABULARY && state->settings.vocab)
		TRY(add_entries(state));
	mention_form_describe(&own->form, &text);
	log_note("markers of the mentions: %s, %s", buffer_string(&text),
		 own->marker_tokens == MARKERS_TEXT
			 ? "read as text (--marker_tokens vocabulary makes them entries of the vocabulary)"
		 : were_entries ? "which are entries of the vocabulary"
				: "which take rows of the vocabulary that were free ([unused...])");
	buffer_release(&text);
	return OK;
}

static enum status check_form(const struct task_state *state)
{
	if (own_of(state)->form.marks[0][0])
		return OK;
	return error_hinted(error_set(ERR_STATE, "the model's folder does not say how mentions are marked"),
			    "bertc finetune --task relation records it in bertc_task.json");
}

static enum status relation_read(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count)
{
	TRY(classification_read(state, set, paths, count));
	if (set->use == TASK_TRAIN) {
		TRY(find_form(state, &set->examples));
		return settle_tokens(state);
	}
	return check_form(state);
}

static enum status relation_take(struct task_state *state, struct task_set *set, const struct task_text *texts, int64_t count)
{
	TRY(check_form(state));
	return task_take_texts(state, set, texts, count);
}

/* ---- Encoding ---- */

/* Scratch memory for an example, including its tokens before truncation. */
struct relation_encoder {
	struct marked_text marked;
	struct tokens scratch;
	int32_t *tokens; /* [count] */
	int64_t count, capacity;
	int64_t marks[MENTION_MARKS], ends[MENTION_MARKS]; /* first token of each marker, and the one after its last */
	int32_t *ids;                                      /* [max_seq_length] */
};

static enum status add_tokens(struct relation_encoder *encoder, const int32_t *ids, int64_t count)
{
	TRY(memory_grow(&encoder->tokens, &encoder->capacity, encoder->count + count, sizeof *encoder->tokens,
			"a text's tokens"));
	if (count > 0)
		memcpy(encoder->tokens + encoder->count, ids, (size_t)count * sizeof *ids);
	encoder->count += count;
	return OK;
}

static enum status add_text(struct relation_encoder *encoder, const struct tokenizer *tokenizer, const char *text, size_t size)
{
	tokens_clear(&encoder->scratch);
	TRY(tokenizer_encode(tokenizer, text, size, &encoder->scratch));
	return add_tokens(encoder, encoder->scratch.ids, encoder->scratch.count);
}

static enum status add_mark(struct relation_encoder *encoder, const struct task_state *state, int mark)
{
	const struct relation_settings *own = own_of(state);
	const struct tokenizer *tokenizer = state->settings.tokenizer;
	const char *text = own->form.marks[mark];
	encoder->marks[mark] = encoder->count;
	if (own->marker_tokens == MARKERS_VOCABULARY) {
		int32_t id = vocab_find(tokenizer_vocab(tokenizer), text, strlen(text));
		if (id < 0)
			return error_set(ERR_STATE, "the vocabulary has no entry '%s', a marker of mentions", text);
		TRY(add_tokens(encoder, &id, 1));
	} else {
		TRY(add_text(encoder, tokenizer, text, strlen(text)));
	}
	encoder->ends[mark] = encoder->count;
	return OK;
}

/* Tokenizes the marked text: each marker separately, and the text between them. */
static enum status encode_marked(struct relation_encoder *encoder, const struct task_state *state)
{
	const struct mention_form *form = &own_of(state)->form;
	const struct marked_text *marked = &encoder->marked;
	const char *text = buffer_string(&marked->text);
	size_t done = 0;
	bool written[MENTION_MARKS] = {false};
	encoder->count = 0;
	for (int i = 0; i < MENTION_MARKS; i++) {
		int next = -1;
		for (int k = 0; k < MENTION_MARKS; k++)
			if (!written[k] && (next < 0 || marked->at[k] < marked->at[next]))
				next = k;
		written[next] = true;
		/* Markers that overlap in a file ("<<<") share characters. */
		if (marked->at[next] > done) {
			TRY(add_text(encoder, state->settings.tokenizer, text + done, marked->at[next] - done));
			done = marked->at[next];
		}
		TRY(add_mark(encoder, state, next));
		size_t end = marked->at[next] + strlen(form->marks[next]);
		done = end > done ? end : done;
	}
	return add_text(encoder, state->settings.tokenizer, text + done, marked->text.size - done);
}

/* What is kept of a text that is too long: tokens [from, from + head) and [tail, tail + room - head). */
struct kept_tokens {
	int64_t from, head, tail, room;
};

/* Text after the mentions is dropped first, as in other tasks; then text before them; then text between them. */
static struct kept_tokens keep(const struct relation_encoder *encoder, int64_t room)
{
	int64_t first = encoder->marks[FIRST_BEGINS], second = encoder->marks[SECOND_BEGINS];
	int64_t begin = first < second ? first : second, other = first < second ? second : first, end = 0, half = room / 2;
	for (int i = 0; i < MENTION_MARKS; i++)
		end = encoder->ends[i] > end ? encoder->ends[i] : end;
	if (encoder->count <= room)
		return (struct kept_tokens){0, encoder->count, encoder->count, encoder->count};
	if (end <= room)
		return (struct kept_tokens){0, room, room, room};
	if (end - begin <= room)
		return (struct kept_tokens){end - room, room, end, room};
	if (other < begin + half)
		return (struct kept_tokens){begin, room, begin + room, room};
	int64_t tail = end - (room - half);
	tail = tail < other ? tail : other;
	tail = tail < begin + half ? begin + half : tail;
	return (struct kept_tokens){begin, half, tail, room};
}

/* The row of a token, after `before` special tokens. */
static int32_t row_of(const struct kept_tokens *kept, int64_t token, int32_t before)
{
	int64_t place = token < kept->from + kept->head ? token - kept->from : kept->head + token - kept->tail;
	BUG_IF(place < 0 || place >= kept->room);
	return (int32_t)place + before;
}

static enum status encode_relation(void *context, const struct task_state *state, const struct example_set *examples,
				   int64_t number, int64_t window, struct encoded_example *out)
{
	(void)window;
	struct relation_encoder *encoder = context;
	const struct vocab *vocab = tokenizer_vocab(state->settings.tokenizer);
	const struct mention_form *form = &own_of(state)->form;
	if (mentions_have_places(examples, number))
		TRY(mentions_mark(examples, number, form, &encoder->marked));
	else
		TRY(mentions_find(&examples->examples[number], form, &encoder->marked));
	TRY(encode_marked(encoder, state));
	struct kept_tokens kept = keep(encoder, state->settings.max_seq_length - template_size(&vocab->single));
	int32_t n = template_join(&vocab->single, encoder->tokens + kept.from, kept.head, encoder->tokens + kept.tail,
				  kept.room - kept.head, encoder->ids);
	int32_t before = vocab->single.before;
	*out = (struct encoded_example){
		.ids = encoder->ids,
		.count = n,
		.second = template_type_0(&vocab->single, kept.room, 0),
		.cut = (int32_t)(encoder->count - kept.room),
		.rows = {row_of(&kept, encoder->marks[FIRST_BEGINS], before),
			 row_of(&kept, encoder->marks[SECOND_BEGINS], before)},
	};
	return OK;
}

static enum status relation_encode(struct task_state *state, struct task_set *set)
{
	struct relation_encoder encoder = {.count = 0};
	TRY(memory_new(&encoder.ids, state->settings.max_seq_length, sizeof *encoder.ids, "a text's tokens"));
	enum status status = classification_encode(state, set, own_of(state)->relation_head == RELATION_MARKERS ? 2 : 0,
						   encode_relation, &encoder);
	marked_text_release(&encoder.marked);
	tokens_release(&encoder.scratch);
	free(encoder.tokens);
	free(encoder.ids);
	return status;
}

/* ---- The head ---- */

static void relation_heads(const struct task_state *state, struct model_heads *out)
{
	bool reads_markers = own_of(state)->relation_head == RELATION_MARKERS;
	*out = (struct model_heads){.architecture = "BertForSequenceClassification", .pooler = true, .count = 1};
	if (reads_markers)
		*out = (struct model_heads){.architecture = "BertForRelationExtraction", .count = 1};
	out->head[0] = (struct head){
		.input = reads_markers ? INPUT_CHOSEN_ROWS : INPUT_FIRST_ROW,
		.joined = reads_markers ? 2 : 0,
		.pooled = !reads_markers,
		.drops = true,
		.outputs = (int32_t)state->labels.count,
		.loss = LOSS_CLASSES,
		.coefficient = 1,
		.name = "classifier",
	};
}

/* ---- Its record ---- */

static void relation_put_record(const void *own, struct json_writer *writer)
{
	const struct relation_settings *relation = own;
	if (!relation->form.marks[0][0])
		return;
	json_open(writer, "relation", '{');
	json_open(writer, "markers", '[');
	for (int i = 0; i < MENTION_MARKS; i++)
		json_put_string(writer, NULL, relation->form.marks[i]);
	json_close(writer);
	json_put_string(writer, "marker_tokens", relation->marker_tokens == MARKERS_VOCABULARY ? "vocabulary" : "text");
	json_put_string(writer, "head", relation->relation_head == RELATION_MARKERS ? "markers" : "cls");
	json_close(writer);
}

static enum status relation_read_record(const struct json *record, const char *name, void *own)
{
	struct relation_settings *out = own;
	const struct json *relation = json_member(record, "relation");
	const struct json *markers = json_member(relation, "markers"), *mark = markers ? markers->first_child : NULL;
	const char *tokens = "", *head = "";
	if (!relation)
		return OK;
	TRY(json_get_string(relation, name, "marker_tokens", &tokens));
	TRY(json_get_string(relation, name, "head", &head));
	bool fits = markers && markers->kind == JSON_ARRAY && markers->child_count == MENTION_MARKS &&
		    (strcmp(tokens, "text") == 0 || strcmp(tokens, "vocabulary") == 0) &&
		    (strcmp(head, "cls") == 0 || strcmp(head, "markers") == 0);
	for (int i = 0; fits && i < MENTION_MARKS; i++, mark = mark->next) {
		fits = mark->kind == JSON_STRING && mark->text_size > 0 && mark->text_size < MARK_BYTES;
		if (fits)
			memcpy(out->form.marks[i], mark->text, mark->text_size + 1);
	}
	if (!fits)
		return error_set(ERR_DATA, "'%s': \"relation\" does not say which markers, marker_tokens and head there are",
				 name);
	out->marker_tokens = tokens[0] == 'v' ? MARKERS_VOCABULARY : MARKERS_TEXT;
	out->relation_head = head[0] == 'm' ? RELATION_MARKERS : RELATION_CLS;
	return OK;
}

const struct task task_relation = {
	.name = "relation",
	.other_names = (const char *const[]){"relation-extraction", NULL},
	.summary = "how two marked mentions of a text are related",
	.architecture = "BertForSequenceClassification",
	.problem_type = "single_label_classification",
	.input = TASK_INPUT_TEXT,
	.relates = true,
	.target = TARGET_CLASS,
	.decides = "f1_micro",
	.view = VIEW_CLASSES,
	.streams = true,
	.weighs_classes = true,
	.calibrates = true,
	.tunes = calibration_tunes,
	.tune = calibration_tune,
	.read = relation_read,
	.take = relation_take,
	.encode = relation_encode,
	.heads = relation_heads,
	.score = classification_score,
	.baseline = words_alone,
	.score_classes = classification_score_classes,
	.write = classification_write,
	.put = classification_put,
	.put_tsv = classification_put_tsv,
	.put_pipeline = classification_put_pipeline,
	.exclusive = (const char *const[]){"markers", "marker_tokens", "relation_head", NULL},
	.settings_bytes = sizeof(struct relation_settings),
	.options = relation_rows,
	.put_record = relation_put_record,
	.read_record = relation_read_record,
};
