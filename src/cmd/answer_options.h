/* Shared by the commands that answer the texts of files (embed, score): rows of their option tables, and a job made from them. */
#ifndef CMD_ANSWER_OPTIONS_H
#define CMD_ANSWER_OPTIONS_H

#include <string.h>
#include "base/option.h"
#include "infer/device_options.h"
#include "cmd/answer_job.h"
#include "infer/encoder.h"
#include "infer/text_chunk.h"
#include "infer/text_table.h"
#include "weights/model_files.h"

/* Where answers go, and how much is computed at a time; of `predict`, too. */
struct answer_output {
	const char *out;
	bool fresh;
	int64_t micro_batch_tokens;
};

struct answer_settings {
	const char *model;
	enum line_form { LINES_DETECTED, LINES_TEXT } input; /* what lines are: TEXT: texts, whatever they look like */
	const char *text_column, *pair_column, *pair_separator;
	enum long_texts long_texts;
	int64_t max_seq_length, doc_stride;
	struct answer_output output;
	struct device_options device;
};

/* The file that --out names; NULL: standard output, which `-` means, too. */
static inline const char *answer_target(const char *out)
{
	return out && strcmp(out, "-") != 0 ? out : NULL;
}

extern const struct option answer_input_rows[], answer_output_rows[];

/* A model opened for such a command. Zero-initialize; close even after a failure. */
struct answer_model {
	struct session session;
	struct encoder *encoder;
	struct tokenizer *tokenizer;
	struct text_settings texts;
	struct text_table *tables; /* of the files that are read as tables */
	struct model_files files;  /* those of the model, as they were before they were read */
	const char *columns[4];
	struct text_counts counts;
	bool is_open;
};
/* Opens `model` (settings->model, or the folder in it that holds the BERT) with these heads; out->files have been looked at.
 * `length` is the maximum length of a text according to the folder, or 0; `overlap`: windows have to overlap. */
MUST_USE enum status answer_model_open(struct answer_model *out, const struct answer_settings *settings, const char *model,
				       const struct session_heads *heads, int32_t length, bool lowercase, bool overlap);
void answer_model_close(struct answer_model *model);

/* A job that reads texts, encoded for this model, which begins the job's context. */
struct answer_job answer_model_job(struct answer_model *model, const struct answer_settings *settings, const char *title,
				   enum status (*answer)(void *context, struct line_chunk *chunk, int64_t first,
							 struct buffer *out, int64_t *out_texts));
/* Runs it, and reports what was odd about the texts. */
MUST_USE enum status answer_model_run(struct answer_model *model, struct answer_job *job, const struct options *options);

/* Fills in the job's input and identity: the values of the options with ROLE_RESULT, the model's files as they were before they
 * were read, and the device. `identity` must live as long as the job. */
MUST_USE enum status answer_job_fill(struct answer_job *job, const struct options *options, const struct model_files *files,
				     const struct backend *device, struct buffer *identity);

#endif
