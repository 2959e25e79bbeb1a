/* The texts of a chunk of lines (infer/line_stream.h), tokenized and cut to the length a model takes. A line is a text or, if the
 * first line of its file is a JSON object, an object that contains one; a chunk with a `form` has rows of a table
 * (infer/text_table.h).
 *
 * Invalid UTF-8 bytes are skipped (text/tokenizer.h) and counted; control characters and NULs are dropped as in the original BERT
 * code. An empty line is a text without tokens, [CLS] [SEP], and is counted too. */
#ifndef INFER_TEXT_CHUNK_H
#define INFER_TEXT_CHUNK_H

#include "infer/encoder.h"
#include "infer/line_stream.h"
#include "text/tokenizer.h"

enum long_texts {
	LONG_CUT,     /* tokens beyond the model's length are left out; pairs as by task_cut_pair() */
	LONG_WINDOWS, /* a text becomes several sequences; pairs are ERR_DATA */
	LONG_STOP,    /* ERR_DATA, naming the line */
};

struct text_settings {
	const struct tokenizer *tokenizer;
	int32_t max_seq_length; /* maximum tokens of a sequence, including [CLS] and [SEP]; at least 8 */
	enum long_texts long_texts;
	int32_t stride; /* LONG_WINDOWS: tokens between the beginnings of successive windows; at most max_seq_length - 2 */
	/* Members of JSON objects, or columns of a table; NULL: "text", and in objects "text_pair" or "pair" if present. */
	const char *text_key, *pair_key;
	const char *pair_separator; /* splits a line into two texts at its last occurrence; NULL: lines are never
				       pairs */
	bool strip;                 /* remove white space around lines and around the separator */
	bool plain;                 /* lines are texts even if they look like JSON */
	const char *prompt;         /* prepended to each text; NULL: none */
	bool leaves_out_prompt;     /* do not pool the prompt: encoder_text.left_out covers it */
};

struct ready_text {
	int64_t first;      /* index of its first sequence */
	int32_t count;      /* number of sequences: 1, or that of its windows */
	int32_t cut;        /* tokens left out */
	int64_t line;       /* number in its file, from 1 */
	size_t id, id_size; /* its "id" as JSON in text_chunk.ids_text; size 0: none */
};

struct text_counts {
	int64_t texts, tokens;        /* tokens of all windows, including [CLS] and [SEP] */
	int64_t empty;                /* texts without a token */
	int64_t cut, cut_tokens;      /* texts that were cut; tokens left out */
	int64_t cut_lines;            /* lines longer than the line stream's limit */
	int64_t windowed;             /* texts split into several windows */
	int64_t bytes, invalid_bytes; /* bytes of texts; those that were not UTF-8 */
	int64_t words, unknown;       /* tokens without [CLS] and [SEP], each text counted once; how many are [UNK] */
};
void text_counts_add(struct text_counts *sum, const struct text_counts *part);
/* Logs what users may not expect, such as cut or empty texts, if there were any. */
void text_counts_log(const struct text_counts *counts, const struct text_settings *settings);

/* The `own` data of a line_chunk. Zero-initialize. */
struct text_chunk {
	struct ready_text *texts; /* [text_count] in the order of the lines */
	int64_t text_count;
	struct encoder_text *sequences; /* [sequence_count] */
	int32_t *window_starts;         /* [sequence_count] number of the text's tokens before the window */
	int64_t sequence_count;
	struct buffer ids_text;
	struct text_counts counts;
	/* Private from here. */
	int32_t *ids;
	int64_t *id_starts;
	int64_t id_count, ids_capacity, id_starts_capacity, text_capacity, sequence_capacity, window_capacity;
	struct tokens tokens[2];
	struct buffer joined;
};
/* Makes the texts of a chunk. A text that cannot be used gives ERR_DATA with file and line. Blank lines between JSON objects are
 * skipped. */
MUST_USE enum status text_chunk_make(struct text_chunk *texts, const struct line_chunk *chunk,
				     const struct text_settings *settings);
void text_chunk_release(struct text_chunk *texts);

#endif
