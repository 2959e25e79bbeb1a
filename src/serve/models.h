/* The models of a service: each folder is opened once, all on one thread pool. */
#ifndef SERVE_MODELS_H
#define SERVE_MODELS_H

#include "infer/text_model.h"
#include "serve/api.h"

struct models_settings {
	struct device_options device;
	int64_t max_batch_tokens; /* tokens computed at a time */
	int64_t max_seq_length;   /* maximum tokens of a text; 0: as each folder says */
	const double *min_score;  /* a class or label with a lower probability is not an answer; NULL: as each folder says */
};

struct served_model {
	char name[128];
	const char *folder; /* as given; borrowed */
	unsigned tasks;     /* a set of 1 << enum api_task: what it can be asked for */
	bool has_checksum;
	uint32_t checksum; /* CRC-32C of the file of weights */
	struct text_model text;
};

/* Zero-initialize; close even after a failure. */
struct models {
	struct served_model *models; /* [count] */
	int count;
	struct pool *pool;
	/* Reused by models_compute() (serve/model_work.h): */
	struct encoder_text *texts;
	int64_t text_capacity;
	struct encoder_answers answers;
};

/* The folder of a model given as "FOLDER", which may have '=' in its path, or "NAME=FOLDER", where the name may have '/'. */
const char *model_folder_of(const char *given);
/* Opens models given in this way; without a name, a model is called like its folder. Duplicate names and folders
 * that cannot be served are errors. `settings` is copied; the strings are borrowed. */
MUST_USE enum status models_open(struct models *out, const char *const *folders, int64_t count,
				 const struct models_settings *settings);
void models_close(struct models *models);
/* Whether clients can ask this model for the task. */
bool model_can(const struct served_model *model, enum api_task task);
/* True for cross-encoders. Models of numbers can rank texts, too, but are not made for it. */
bool model_is_reranker(const struct served_model *model);
/* Appends what /info says about a model, as members of the open object. */
void model_put_info(const struct served_model *model, struct json_writer *writer);

#endif
