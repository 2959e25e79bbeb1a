/* The models of a service: folders opened once, on one pool of threads. */
#ifndef SERVE_MODELS_H
#define SERVE_MODELS_H

#include "infer/text_model.h"
#include "serve/api.h"

struct models_settings {
	struct device_settings device;
	int64_t max_batch_tokens; /* computed at a time */
	int64_t max_seq_length;   /* tokens of a text at most; 0: as each folder says */
};

struct served_model {
	char name[128];
	const char *folder; /* as given; borrowed */
	unsigned tasks;     /* a set of 1 << enum api_task: what it can be asked for */
	bool has_checksum;
	uint32_t checksum; /* CRC-32C of the file of weights, as it was read */
	struct text_model text;
};

/* Zero-initialise; closed also after a failure. */
struct models {
	struct served_model *models; /* [count] */
	int count;
	struct pool *pool;
	/* Of models_compute() (serve/model_work.h), from call to call. */
	struct encoder_text *texts;
	int64_t text_capacity;
	struct encoder_answers answers;
};

/* Opens "FOLDER" or "NAME=FOLDER"s. Without a name a model is called as its folder. Two of one name, and folders that cannot be
 * served, are errors. The settings are copied, the folders' names borrowed. */
MUST_USE enum status models_open(struct models *out, const char *const *folders, int64_t count,
				 const struct models_settings *settings);
void models_close(struct models *models);
bool model_can(const struct served_model *model, enum api_task task);
/* Appends what /info says of a model, as members of the object that is open. */
void model_put_info(const struct served_model *model, struct json_writer *writer);

#endif
