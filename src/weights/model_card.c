/* Writes the sections of a model card. */
#include "weights/model_card.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "formats/hub.h"
#include "model/forms.h"
#include "weights/sentence_folder.h"

/* Labels shown; a model may have thousands. */
#define LABELS_SHOWN 30
/* Longer values of settings are cut. */
#define VALUE_BYTES 160

/* The Hub's name for the use of each of transformers' classes, by the end of the class's name. */
static const struct card_use {
	const char *ending, *tag, *automatic, *command;
} uses[] = {
	{"ForPreTraining", "fill-mask", "AutoModelForMaskedLM", "fill  --model FOLDER \"Paris is the [MASK] of France.\""},
	{"ForMaskedLM", "fill-mask", "AutoModelForMaskedLM", "fill  --model FOLDER \"Paris is the [MASK] of France.\""},
	{"ForSequenceClassification", "text-classification", "AutoModelForSequenceClassification",
	 "predict --model FOLDER texts.txt"},
	{"ForTokenClassification", "token-classification", "AutoModelForTokenClassification", "predict --model FOLDER texts.txt"},
	{"ForQuestionAnswering", "question-answering", "AutoModelForQuestionAnswering", "predict --model FOLDER texts.txt"},
	{"ForMultipleChoice", "multiple-choice", "AutoModelForMultipleChoice", "predict --model FOLDER texts.txt"},
	{"Model", "feature-extraction", "AutoModel", "embed --model FOLDER texts.txt"},
};
static const struct card_use of_sentences = {"Model", "sentence-similarity", NULL, "embed --model FOLDER texts.txt"};

static const char *architecture_of(const struct model_card *card)
{
	return card->task && card->task->architecture ? card->task->architecture : "BertForPreTraining";
}

/* NULL: a class that transformers has no name for. */
static const struct card_use *use_of(const struct model_card *card)
{
	const char *name = architecture_of(card);
	if (card->embeds_sentences)
		return &of_sentences;
	for (int i = 0; i < (int)(sizeof uses / sizeof uses[0]); i++) {
		size_t size = strlen(name), ending = strlen(uses[i].ending);
		if (size > ending && strcmp(name + size - ending, uses[i].ending) == 0)
			return &uses[i];
	}
	return NULL;
}

/* Appends a YAML string; JSON strings are valid YAML. */
static void put_yaml(struct buffer *out, const char *text)
{
	struct json_writer writer = {.out = out};
	json_put_string(&writer, NULL, text);
}

/* Appends text for a Markdown table, cut to VALUE_BYTES. */
static void put_cell(struct buffer *out, const char *text)
{
	char shown[VALUE_BYTES];
	text_escape(shown, sizeof shown, text, false);
	for (const char *p = shown; *p; p++) {
		if (strchr("|\\`*_<>[]", *p))
			buffer_char(out, '\\');
		buffer_char(out, *p);
	}
	if (strlen(text) >= sizeof shown)
		buffer_text(out, "…");
}

static void put_results(struct buffer *out, const struct model_card *card, const char *tag)
{
	const char *set = NULL;
	buffer_text(out, "model-index:\n- name: ");
	put_yaml(out, card->name);
	buffer_text(out, "\n  results:\n");
	for (int i = 0; i < card->metric_count; i++) {
		const struct card_metric *metric = &card->metrics[i];
		if (!isfinite(metric->value))
			continue;
		if (!set || strcmp(set, metric->set) != 0) {
			buffer_format(out, "  - task:\n      type: %s\n    dataset:\n      name: ", tag);
			put_yaml(out, metric->set);
			buffer_text(out, "\n      type: ");
			put_yaml(out, metric->set);
			buffer_text(out, "\n    metrics:\n");
			set = metric->set;
		}
		buffer_text(out, "    - type: ");
		put_yaml(out, metric->name);
		buffer_text(out, "\n      value: ");
		buffer_double(out, metric->value);
		buffer_char(out, '\n');
	}
}

static bool has_metrics(const struct model_card *card)
{
	for (int i = 0; i < card->metric_count; i++)
		if (isfinite(card->metrics[i].value))
			return true;
	return false;
}

/* The Hub's name of the model that training began with, if its folder lies in the Hub's cache. */
static void put_base_model(struct buffer *out, const struct json *settings)
{
	const struct json *model = settings ? json_member(settings, "model") : NULL;
	char id[256];
	if (!model || model->kind != JSON_STRING || !hub_name_of(model->text, id, sizeof id))
		return;
	buffer_text(out, "base_model: ");
	put_yaml(out, id);
	buffer_char(out, '\n');
}

static void put_front_matter(struct buffer *out, const struct model_card *card)
{
	const struct card_use *use = use_of(card);
	buffer_format(out,
		      "---\n"
		      "# license: to be chosen by the owner of the model, with regard to the text it was trained on\n"
		      "# language: not known to the program that trained it\n"
		      "library_name: %s\n",
		      card->embeds_sentences ? "sentence-transformers" : "transformers");
	put_base_model(out, card->settings);
	buffer_format(out, "tags:\n- %s\n%s- bertc\n", model_form_of(&card->model->config)->model_type,
		      card->embeds_sentences ? "- sentence-transformers\n" : "");
	if (use)
		buffer_format(out, "pipeline_tag: %s\n", use->tag);
	if (use && has_metrics(card))
		put_results(out, card, use->tag);
	buffer_text(out, "---\n\n");
}

/* In tokens. Folders of embedding models have a limit of their own, mostly below the model's positions. */
static int longest_text(const struct model_card *card)
{
	const struct sentence_folder *sentences = card->task ? card->task->sentence : NULL;
	return sentences && sentences->max_seq_length > 0 ? sentences->max_seq_length : model_positions(&card->model->config);
}

static void put_model(struct buffer *out, const struct model_card *card)
{
	const struct model_config *config = &card->model->config;
	char layers[FORMAT_BYTES];
	buffer_text(out, "# ");
	put_cell(out, card->name);
	buffer_format(
		out,
		"\n\nA model of the form `%s` with %.1f million weights: %s, width %d, %d attention %s, a %svocabulary of %d "
		"entries, "
		"texts of up to %d tokens. The class of transformers is `%s`. Trained with bertc ",
		model_form_of(config)->model_type, (double)card->model->element_count / 1e6,
		format_counted(layers, config->num_hidden_layers, "layer", "layers"), config->hidden_size,
		config->num_attention_heads, config->num_attention_heads == 1 ? "head" : "heads",
		card->has_own_rules ? ""
		: card->cased       ? "cased "
				    : "lower-cased ",
		config->vocab_size, longest_text(card), architecture_of(card));
	buffer_format(out, VERSION " for %" PRId64 " %s.\n", card->step, card->step == 1 ? "step" : "steps");
}

static void put_labels(struct buffer *out, const struct task_config *task)
{
	if (!task || !task->labels || task->label_count < 2)
		return;
	buffer_format(out, "\nIts %d classes are ", task->label_count);
	for (int32_t i = 0; i < task->label_count && i < LABELS_SHOWN; i++) {
		buffer_text(out, i > 0 ? ", " : "");
		put_cell(out, task->labels[i]);
	}
	buffer_text(out, task->label_count > LABELS_SHOWN ? ", …; `config.json` has them all.\n" : ".\n");
}

static void put_usage(struct buffer *out, const struct model_card *card)
{
	const struct card_use *use = use_of(card);
	/* Only SPLADE's models have a head for words and sentence-transformers' files. */
	const char *class = strcmp(architecture_of(card), "BertForMaskedLM") == 0 ? "SparseEncoder" : "SentenceTransformer";
	if (!use)
		return;
	buffer_text(out, "\n## Use\n\n```python\n");
	if (card->embeds_sentences)
		buffer_format(out,
			      "from sentence_transformers import %s\n\n"
			      "vectors = %s(\"FOLDER\").encode([\"A text.\", \"Another one.\"])\n",
			      class, class);
	else
		buffer_format(out,
			      "from transformers import %s, AutoTokenizer\n\n"
			      "model = %s.from_pretrained(\"FOLDER\")\ntokenizer = AutoTokenizer.from_pretrained(\"FOLDER\")\n",
			      use->automatic, use->automatic);
	buffer_format(out, "```\n\nor, without Python,\n\n    bertc %s\n", use->command);
}

static void put_metrics(struct buffer *out, const struct model_card *card)
{
	if (!has_metrics(card))
		return;
	buffer_text(out, "\n## Results\n\n| set | measure | value |\n|---|---|---|\n");
	for (int i = 0; i < card->metric_count; i++) {
		if (!isfinite(card->metrics[i].value))
			continue;
		buffer_text(out, "| ");
		put_cell(out, card->metrics[i].set);
		buffer_text(out, " | ");
		put_cell(out, card->metrics[i].name);
		buffer_format(out, " | %.6g |\n", card->metrics[i].value);
	}
}

static void put_value(struct buffer *out, const struct json *value)
{
	if (value->kind == JSON_STRING || value->kind == JSON_NUMBER) {
		/* Where files lay on the machine is nobody's business: their names are enough. */
		size_t size = set_name_size(value->text);
		const char *name = value->text + size + (size > 0);
		char set[VALUE_BYTES];
		snprintf(set, sizeof set, "%.*s", (int)(name - value->text), value->text);
		for (const char *at = *name == '/' ? name : ""; *at; at++)
			if (*at == '/' && at[1] && at[1] != '/')
				name = at + 1;
		put_cell(out, set);
		put_cell(out, name);
	}
	for (const struct json *child = value->kind == JSON_ARRAY ? value->first_child : NULL; child; child = child->next) {
		put_value(out, child);
		buffer_text(out, child->next ? ", " : "");
	}
}

static bool is_plain(const struct json *value)
{
	if (value->kind == JSON_ARRAY)
		return value->first_child && value->first_child->kind == JSON_STRING;
	return value->kind == JSON_STRING || value->kind == JSON_NUMBER;
}

static void put_row(struct buffer *out, const char *key)
{
	buffer_text(out, "| ");
	put_cell(out, key);
	buffer_text(out, " | ");
}

/* The values of a setting in all phases, in their order, or the one that all have. A phase with a time limit recorded an
 * estimate of its steps: left out. */
static void put_phase_row(struct buffer *out, const struct json *phases, const char *key)
{
	const struct json *first = json_member(phases->first_child, key);
	bool differs = false;
	int count = 0;
	for (const struct json *phase = phases->first_child; phase; phase = phase->next) {
		const struct json *value = json_member(phase, key);
		if (strcmp(key, "num_train_steps") == 0 && json_member(phase, "time"))
			return;
		differs |= !value || !first || value->kind == JSON_ARRAY || first->kind == JSON_ARRAY ||
			   strcmp(value->text, first->text) != 0;
	}
	put_row(out, key);
	for (const struct json *phase = phases->first_child; phase && (differs || count == 0); phase = phase->next) {
		const struct json *value = json_member(phase, key);
		buffer_text(out, count++ > 0 ? ", then " : "");
		if (value)
			put_value(out, value);
		else
			buffer_text(out, "none");
	}
	buffer_text(out, " |\n");
}

static void put_phases(struct buffer *out, const struct json *phases)
{
	for (const struct json *phase = phases->first_child; phase; phase = phase->next)
		for (const struct json *member = phase->first_child; member; member = member->next) {
			const struct json *earlier = phases->first_child;
			while (earlier != phase && !json_member(earlier, member->key))
				earlier = earlier->next;
			if (earlier == phase && is_plain(member))
				put_phase_row(out, phases, member->key);
		}
}

static void put_settings(struct buffer *out, const struct model_card *card)
{
	bool timed = card->settings && json_member(card->settings, "time");
	if (!card->settings)
		return;
	buffer_text(out, "\n## Training\n\n| setting | value |\n|---|---|\n");
	for (const struct json *member = card->settings->first_child; member; member = member->next) {
		if (strcmp(member->key, "phases") == 0 && member->kind == JSON_ARRAY && member->first_child)
			put_phases(out, member);
		if (!is_plain(member))
			continue;
		put_row(out, member->key);
		/* A run with a time limit recorded an estimate. */
		if (timed && strcmp(member->key, "num_train_steps") == 0)
			buffer_format(out, "%" PRId64, card->step);
		else
			put_value(out, member);
		buffer_text(out, " |\n");
	}
}

void model_card_put(struct buffer *out, const struct model_card *card)
{
	put_front_matter(out, card);
	put_model(out, card);
	put_labels(out, card->task);
	put_usage(out, card);
	put_metrics(out, card);
	put_settings(out, card);
	buffer_text(out, "\n## Limits\n\nThe model repeats what its training text holds, errors and prejudices included. Say "
			 "here what it is "
			 "meant for, and what it is not.\n");
}
