/* Shared by the commands that answer the texts of files (embed, score): rows of their option tables, and a job made from them. */
#ifndef CMD_ANSWER_OPTIONS_H
#define CMD_ANSWER_OPTIONS_H

#include <string.h>
#include "base/option.h"
#include "infer/device_options.h"
#include "cmd/answer_job.h"
#include "infer/encoder.h"
#include "infer/text_table.h"
#include "weights/model_files.h"

struct answer_settings {
	const char *model, *input, *text_column, *pair_column, *pair_separator, *long_texts, *out;
	int64_t max_seq_length, doc_stride, micro_batch_tokens;
	bool fresh;
	struct device_options device;
};

/* The file that --out names; NULL: standard output, which `-` means, too. */
static inline const char *answer_target(const char *out)
{
	return out && strcmp(out, "-") != 0 ? out : NULL;
}

/* Whether lines are texts, whatever they look like (--input text). */
bool answer_is_plain(const struct answer_settings *settings);

/* Rows of an option table for a settings struct whose member `member` is a struct answer_settings: the input ... */
#define ANSWER_INPUT_OPTIONS(settings, member, long_texts_default)                                                               \
	{.name = "model",                                                                                                        \
	 .type = OPTION_TEXT,                                                                                                    \
	 .field = offsetof(settings, member.model),                                                                              \
	 .role = ROLE_PLACE,                                                                                                     \
	 .value_name = "FOLDER",                                                                                                 \
	 .alias = "model_name_or_path",                                                                                          \
	 .help = "run folder, checkpoint, or any BERT folder or weights file with its configuration and vocabulary beside it"},  \
		{.name = "input",                                                                                                \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.input),                                                                      \
		 .fallback = "auto",                                                                                             \
		 .range = "auto|text",                                                                                           \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "FORM",                                                                                           \
		 .help = "what a line is: auto reads a file as JSON lines if its first line that is not blank begins a JSON "    \
			 "object, as a table (TSV, CSV) if --text_column or --pair_column is given, and as texts otherwise"},    \
		{.name = "text_column",                                                                                          \
		 .type = OPTION_TEXT,                                                                                            \
		 .field = offsetof(settings, member.text_column),                                                                \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "NAME",                                                                                           \
		 .fallback_text = "text",                                                                                        \
		 .help = "member of a JSON object, or column of a table by name or by number from 1, that holds the text"},      \
		{.name = "pair_column",                                                                                          \
		 .type = OPTION_TEXT,                                                                                            \
		 .field = offsetof(settings, member.pair_column),                                                                \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "NAME",                                                                                           \
		 .fallback_text = "text_pair or pair of a JSON object, if there is one",                                         \
		 .help = "member of a JSON object, or column of a table, that holds the second text of a pair"},                 \
		{.name = "pair_separator",                                                                                       \
		 .type = OPTION_TEXT,                                                                                            \
		 .field = offsetof(settings, member.pair_separator),                                                             \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "TEXT",                                                                                           \
		 .fallback_text = "none: a line is one text",                                                                    \
		 .help = "what separates the two texts of a pair in one line, as in 'a ||| b'; its last occurrence counts"},     \
		{.name = "max_seq_length",                                                                                       \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.max_seq_length),                                                             \
		 .range = "8..65536",                                                                                            \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "N",                                                                                              \
		 .fallback_text = "as the folder says, but at most the model's number of positions",                             \
		 .help = "maximum number of tokens per text, including [CLS] and [SEP]"},                                        \
		{.name = "long_texts",                                                                                           \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.long_texts),                                                                 \
		 .fallback = long_texts_default,                                                                                 \
		 .range = "cut|windows|stop",                                                                                    \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "WHAT",                                                                                           \
		 .help = "what to do with texts that are too long: cut and count them, split them into windows, or stop with "   \
			 "an error"},                                                                                            \
	{                                                                                                                        \
		.name = "doc_stride", .type = OPTION_INTEGER, .field = offsetof(settings, member.doc_stride),                    \
		.range = "1..65536", .role = ROLE_RESULT, .value_name = "N",                                                     \
		.help = "distance in tokens between the beginnings of two windows",                                              \
		.fallback_text = "the length of a window, or half of it if windows must overlap"                                 \
	}

/* ... and the output. */
#define ANSWER_OUTPUT_OPTIONS(settings, member)                                                                                  \
	{.name = "out",                                                                                                          \
	 .type = OPTION_TEXT,                                                                                                    \
	 .field = offsetof(settings, member.out),                                                                                \
	 .role = ROLE_PLACE,                                                                                                     \
	 .value_name = "FILE",                                                                                                   \
	 .fallback_text = "standard output",                                                                                     \
	 .help = "a file for the answers; an interrupted command resumes there when it is run again"},                           \
		FRESH_OPTION(offsetof(settings, member.fresh))

#define FRESH_OPTION(offset)                                                                                                     \
	{                                                                                                                        \
		.name = "fresh", .type = OPTION_FLAG, .field = (offset), .fallback = "false", .role = ROLE_RUN,                  \
		.help = "start over even if an interrupted command left part of --out"                                           \
	}

#define MICRO_BATCH_OPTION(settings, member)                                                                                     \
	{                                                                                                                        \
		.name = "micro_batch_tokens", .type = OPTION_INTEGER, .field = offsetof(settings, member), .range = "64..",      \
		.role = ROLE_RUN, .value_name = "N", .fallback_text = "4096; on a GPU 8192 or more, in whole waves",             \
		.help = "tokens computed at a time"                                                                              \
	}

/* A model opened for such a command. Zero-initialize; close even after a failure. */
struct answer_model {
	struct session session;
	struct encoder *encoder;
	struct tokenizer *tokenizer;
	struct text_settings texts;
	struct text_table *tables; /* of the files that are read as tables */
	bool is_open;
};
/* Opens `model` (settings->model, or the folder in it that holds the BERT) with these heads. `length` is the maximum length of a
 * text according to the folder, or 0; `overlap`: windows have to overlap. */
MUST_USE enum status answer_model_open(struct answer_model *out, const struct answer_settings *settings, const char *model,
				       const struct session_heads *heads, int32_t length, bool lowercase, bool overlap);
void answer_model_close(struct answer_model *model);

/* For answer_job.begin_file. */
MUST_USE enum status answer_model_begin_file(struct answer_model *model, const struct line_chunk *chunk, const void **out_form);

/* Fills in the job's input and identity: the values of the options with ROLE_RESULT, the model's files as they were before they
 * were read, and the device. `identity` must live as long as the job. */
MUST_USE enum status answer_job_fill(struct answer_job *job, const struct options *options, const struct model_files *files,
				     const struct backend *device, struct buffer *identity);

#endif
