/* The tables of tensor names, and the translation to and from ours. */
#include <stdio.h>
#include <string.h>
#include "base/text.h"
#include "model/forms.h"
#include "weights/weight_names.h"

#define COUNT(array) (sizeof array / sizeof((array)[0]))

struct google_row {
	const char *google, *ours;
	bool transposed;
};

/* Google's names (google-research/bert, modeling.py and run_pretraining.py); kernels are (inputs, outputs). */
static const struct google_row google_rows[] = {
	{"bert/embeddings/word_embeddings", "bert.embeddings.word_embeddings.weight", false},
	{"bert/embeddings/position_embeddings", "bert.embeddings.position_embeddings.weight", false},
	{"bert/embeddings/token_type_embeddings", "bert.embeddings.token_type_embeddings.weight", false},
	{"bert/embeddings/LayerNorm/gamma", "bert.embeddings.LayerNorm.weight", false},
	{"bert/embeddings/LayerNorm/beta", "bert.embeddings.LayerNorm.bias", false},
	{"bert/pooler/dense/kernel", "bert.pooler.dense.weight", true},
	{"bert/pooler/dense/bias", "bert.pooler.dense.bias", false},
	{"cls/predictions/transform/dense/kernel", "cls.predictions.transform.dense.weight", true},
	{"cls/predictions/transform/dense/bias", "cls.predictions.transform.dense.bias", false},
	{"cls/predictions/transform/LayerNorm/gamma", "cls.predictions.transform.LayerNorm.weight", false},
	{"cls/predictions/transform/LayerNorm/beta", "cls.predictions.transform.LayerNorm.bias", false},
	{"cls/predictions/output_bias", "cls.predictions.bias", false},
	{"cls/predictions/output_weights", "cls.predictions.decoder.weight", false}, /* forks that untie it */
	{"cls/seq_relationship/output_weights", "cls.seq_relationship.weight", false},
	{"cls/seq_relationship/output_bias", "cls.seq_relationship.bias", false},
	/* run_classifier.py and its variants for tagging; run_squad.py. */
	{"output_weights", CLASSIFIER_WEIGHT, false},
	{"output_bias", CLASSIFIER_BIAS, false},
	{"cls/squad/output_weights", SPAN_WEIGHT, false},
	{"cls/squad/output_bias", SPAN_BIAS, false},
};

/* Names within a layer, after "bert/encoder/layer_<number>/" and "bert.encoder.layer.<number>.". */
static const struct google_row google_layer_rows[] = {
	{"attention/self/query/kernel", "attention.self.query.weight", true},
	{"attention/self/query/bias", "attention.self.query.bias", false},
	{"attention/self/key/kernel", "attention.self.key.weight", true},
	{"attention/self/key/bias", "attention.self.key.bias", false},
	{"attention/self/value/kernel", "attention.self.value.weight", true},
	{"attention/self/value/bias", "attention.self.value.bias", false},
	{"attention/output/dense/kernel", "attention.output.dense.weight", true},
	{"attention/output/dense/bias", "attention.output.dense.bias", false},
	{"attention/output/LayerNorm/gamma", "attention.output.LayerNorm.weight", false},
	{"attention/output/LayerNorm/beta", "attention.output.LayerNorm.bias", false},
	{"intermediate/dense/kernel", "intermediate.dense.weight", true},
	{"intermediate/dense/bias", "intermediate.dense.bias", false},
	{"output/dense/kernel", "output.dense.weight", true},
	{"output/dense/bias", "output.dense.bias", false},
	{"output/LayerNorm/gamma", "output.LayerNorm.weight", false},
	{"output/LayerNorm/beta", "output.LayerNorm.bias", false},
};

/* Prefixes that programs add to all names: PyTorch's data parallelism and compiler, Lightning. */
static const char *const wrappers[] = {"module.", "_orig_mod.", "model."};

/* How names begin if an encoder is saved without heads; "bert" is missing in front. */
static const char *const bare_beginnings[] = {"embeddings", "embeddings_project", "encoder", "final", "pooler"};

/* Variants of parts of Hugging Face's names. */
static const struct {
	const char *other, *ours;
} spellings[] = {
	{"LayerNorm.gamma", "LayerNorm.weight"}, /* Hugging Face until 2019, NVIDIA */
	{"LayerNorm.beta", "LayerNorm.bias"},
	{".dense_act.", ".dense."}, /* NVIDIA: a linear layer with its activation */
	{".base_layer.", "."},      /* peft: a layer that an adapter adds to */
};

/* Ends of names of constants; position_ids, for instance, holds 0, 1, 2, ... */
static const char *const buffers[] = {"embeddings.position_ids", "embeddings.token_type_ids"};

/* Last parts of the names of counters and the like. */
static const char *const bookkeeping_parts[] = {
	"global_step", "good_steps",   "loss_scale",   "beta1_power",        "beta2_power",
	"local_step",  "batch_finite", "save_counter", "current_loss_scale", "learning_rate",
};

static bool is_among(const char *word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Strips the prefixes of wrappers from a name. */
static const char *unwrapped(const char *name)
{
	for (size_t i = 0; i < COUNT(wrappers); i++)
		if (starts_with(name, wrappers[i]))
			return unwrapped(name + strlen(wrappers[i]));
	return name;
}

/* Copies the name, with "bert" in front if it is missing. */
static void with_bert(char *out, size_t size, const char *name, char separator)
{
	size_t first = strcspn(name, "./");
	bool bare = false;
	for (size_t i = 0; i < COUNT(bare_beginnings); i++)
		bare |= name[first] == separator && strlen(bare_beginnings[i]) == first &&
			strncmp(name, bare_beginnings[i], first) == 0;
	if (bare)
		snprintf(out, size, "bert%c%s", separator, name);
	else
		snprintf(out, size, "%s", name);
}

static bool find_row(const struct google_row *rows, size_t count, const char *google, const char *prefix, struct tensor_name *out)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(rows[i].google, google) != 0)
			continue;
		snprintf(out->name, sizeof out->name, "%s%s", prefix, rows[i].ours);
		out->transposed = rows[i].transposed;
		return true;
	}
	return false;
}

/* A weight by Google's name, with "bert/" in front. */
static bool find_google(const char *name, struct tensor_name *out)
{
	static const char layer_prefix[] = "bert/encoder/layer_";
	char prefix[64];
	if (!starts_with(name, layer_prefix))
		return find_row(google_rows, COUNT(google_rows), name, "", out);
	const char *number = name + strlen(layer_prefix);
	size_t digits = strspn(number, "0123456789");
	if (digits == 0 || digits >= 9 || number[digits] != '/')
		return false;
	snprintf(prefix, sizeof prefix, "bert.encoder.layer.%.*s.", (int)digits, number);
	return find_row(google_layer_rows, COUNT(google_layer_rows), number + digits + 1, prefix, out);
}

/* Names with '/' between their parts, and TensorFlow's bookkeeping, whose names have no parts. */
static void from_google(const char *stored, struct tensor_name *out)
{
	char name[sizeof out->name];
	struct tensor_name of;
	if (strstr(stored, "/.ATTRIBUTES/")) { /* an object of TensorFlow 2, whatever it is called */
		snprintf(out->name, sizeof out->name, "%s", stored);
		return;
	}
	with_bert(name, sizeof name, stored, '/');
	if (text_ends_with(name, ":0"))
		name[strlen(name) - 2] = 0;
	char *slash = strrchr(name, '/');
	if (is_among(slash ? slash + 1 : name, bookkeeping_parts, COUNT(bookkeeping_parts))) {
		out->meaning = MEANS_BOOKKEEPING;
	} else if (!find_google(name, out)) {
		/* Not a weight that we know: the name is kept, and must not match any of ours. What has a weight's name in front,
		 * such as "bert/pooler/dense/kernel/adam_m", is its optimizer's. */
		snprintf(out->name, sizeof out->name, "%s", name);
		if (slash) {
			*slash = 0;
			out->meaning = find_google(name, &of) ? MEANS_OPTIMIZER : MEANS_PARAMETER;
		}
	}
}

/* Replaces the first occurrence of `other` in `name` by `ours`. */
static void respell(char *name, size_t size, const char *other, const char *ours)
{
	char *at = strstr(name, other), rest[256];
	if (!at)
		return;
	snprintf(rest, sizeof rest, "%s", at + strlen(other));
	snprintf(at, size - (size_t)(at - name), "%s%s", ours, rest);
}

/* Replaces the first occurrence of whole parts of a name, or the whole name. */
static void rename_part(char *name, size_t size, const char *from, const char *to)
{
	char *at = strstr(name, from);
	bool whole = !text_ends_with(from, ".");
	if (whole && strcmp(name, from) != 0)
		return;
	while (at && at > name && at[-1] != '.')
		at = strstr(at + 1, from);
	if (at)
		respell(at, size - (size_t)(at - name), from, to);
}

/* The name of a head's last layer or of the layer before it, for a weight or a bias. */
static void rename_layer(char *name, size_t size, const char *from, const char *to)
{
	size_t length = strlen(from);
	if (starts_with(name, from) && (strcmp(name + length, ".weight") == 0 || strcmp(name + length, ".bias") == 0))
		respell(name, size, from, to);
}

/* From the names of any form to ours. No form gives a name of another's a different meaning. */
static void from_forms(char *name, size_t size)
{
	const struct model_form *form;
	for (int32_t i = 0; (form = model_form_at(i)); i++) {
		const struct head_form *heads[] = {&form->first_row, &form->choice, &form->rows};
		for (const struct form_name *row = form->names; row && row->ours; row++)
			rename_part(name, size, row->theirs, row->ours);
		for (size_t h = 0; h < COUNT(heads); h++) {
			if (heads[h]->dense)
				rename_layer(name, size, heads[h]->dense, CLASSIFIER_DENSE);
			if (heads[h]->linear)
				rename_layer(name, size, heads[h]->linear, "classifier");
		}
	}
}

void tensor_name_to_form(const struct model *model, const char *ours, char out[TENSOR_NAME_BYTES])
{
	const struct model_form *form = model_form_of(&model->config);
	snprintf(out, TENSOR_NAME_BYTES, "%s", ours);
	for (int h = 0; h < model->heads.count; h++) {
		const struct head_form *head = model_head_form(&model->config, &model->heads.head[h]);
		if (head->linear)
			rename_layer(out, TENSOR_NAME_BYTES, "classifier", head->linear);
		if (head->dense)
			rename_layer(out, TENSOR_NAME_BYTES, CLASSIFIER_DENSE, head->dense);
	}
	for (const struct form_name *row = form->names; row && row->ours; row++)
		rename_part(out, TENSOR_NAME_BYTES, row->ours, row->theirs);
}

static void from_hugging_face(const char *stored, struct tensor_name *out)
{
	char name[sizeof out->name];
	snprintf(name, sizeof name, "%s", stored);
	from_forms(name, sizeof name);
	with_bert(out->name, sizeof out->name, name, '.');
}

struct tensor_name tensor_name_from(const char *stored)
{
	struct tensor_name out = {.meaning = MEANS_PARAMETER};
	const char *name = unwrapped(stored);
	if (strlen(name) > sizeof out.name - 64) { /* too long for any weight: kept unchanged */
		snprintf(out.name, sizeof out.name, "%.*s", (int)sizeof out.name - 1, stored);
		return out;
	}
	if (!strchr(name, '.') || strchr(name, '/'))
		from_google(name, &out);
	else
		from_hugging_face(name, &out);
	for (size_t i = 0; i < COUNT(spellings); i++)
		respell(out.name, sizeof out.name, spellings[i].other, spellings[i].ours);
	for (size_t i = 0; i < COUNT(buffers); i++)
		if (text_ends_with(out.name, buffers[i]))
			out.meaning = MEANS_BUFFER;
	return out;
}

/* The first row of a table with this name of ours, or NULL. */
static const struct google_row *row_of(const struct google_row *rows, size_t count, const char *ours)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(rows[i].ours, ours) == 0)
			return &rows[i];
	return NULL;
}

bool tensor_name_to_google(const char *ours, struct tensor_name *out)
{
	static const char layer_prefix[] = "bert.encoder.layer.";
	const struct google_row *row = row_of(google_rows, COUNT(google_rows), ours);
	*out = (struct tensor_name){.meaning = MEANS_PARAMETER};
	if (row) {
		snprintf(out->name, sizeof out->name, "%s", row->google);
	} else if (starts_with(ours, layer_prefix)) {
		const char *number = ours + strlen(layer_prefix);
		size_t digits = strspn(number, "0123456789");
		row = number[digits] == '.' ? row_of(google_layer_rows, COUNT(google_layer_rows), number + digits + 1) : NULL;
		if (row)
			snprintf(out->name, sizeof out->name, "bert/encoder/layer_%.*s/%s", (int)digits, number, row->google);
	}
	out->transposed = row && row->transposed;
	return row != NULL;
}
