/* The model card: a README.md with front matter, as shown by the Hugging Face Hub, that says what is known when a run ends. What
 * is unknown (license, language) is left to the owner, and the card says so. */
#ifndef WEIGHTS_MODEL_CARD_H
#define WEIGHTS_MODEL_CARD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/json.h"
#include "model/model.h"
#include "weights/config_file.h"

#define MODEL_CARD_FILE "README.md"

struct card_metric {
	const char *set;  /* "dev" */
	const char *name; /* name as in metrics.jsonl and eval_results.json */
	double value;     /* NaN: undefined, left out */
};

/* All borrowed. */
struct model_card {
	const char *name; /* of the model */
	const struct model *model;
	const struct task_config *task; /* NULL: from pre-training */
	bool cased, has_own_rules;      /* the latter: it depends on the tokenizer.json what becomes of upper case */
	bool embeds_sentences;          /* its folder is sentence-transformers', too */
	int64_t step;
	const struct json *settings; /* an object that says how the model was trained; strings, numbers, and lists of strings are
					shown. NULL: unknown */
	const struct card_metric *metrics;
	int metric_count;
};

/* Appends the card. Names, labels, and settings come from files and command lines, so anything with a meaning in Markdown or YAML
 * is escaped. */
void model_card_put(struct buffer *out, const struct model_card *card);

#endif
