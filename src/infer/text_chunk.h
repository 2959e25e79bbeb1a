/* The texts of a chunk of lines (infer/line_stream.h), tokenised and cut to what a model takes. A line is a text, or a JSON
 * object with one, if the first line of its file is one.
 *
 * Of invalid UTF-8 what is valid is read (text/tokenizer.h), control characters and NULs vanish as in BERT's own code; an empty
 * line is a text without tokens, [CLS] [SEP]. All of these are counted. */
#ifndef INFER_TEXT_CHUNK_H
#define INFER_TEXT_CHUNK_H

#include "infer/encoder.h"
#include "infer/line_stream.h"
#include "text/tokenizer.h"

enum long_texts {
	LONG_CUT,     /* what is beyond the model's length is left out; pairs by Google's rule */
	LONG_WINDOWS, /* a text becomes several sequences; pairs are ERR_DATA */
	LONG_STOP,    /* ERR_DATA that names the line */
};

struct text_settings {
	const struct tokenizer *tokenizer;
	int32_t max_seq_length; /* tokens of a sequence at most, [CLS] and [SEP] included; at least 8 */
	enum long_texts long_texts;
	int32_t stride; /* LONG_WINDOWS: tokens from the beginning of a window to that of the next; at most max_seq_length - 2 */
	const char *text_key, *pair_key; /* of JSON objects; NULL: "text"; "text_pair" or "pair", if there */
	const char *pair_separator;      /* between the two texts of a line that holds it, its last place counts; NULL: lines are
					    never pairs */
	bool strip;                      /* white space around lines and around the separator goes */
	bool plain;                      /* lines are texts even where they look like JSON */
	const char *prompt;              /* put before each text; NULL: none */
	bool leaves_out_prompt;          /* encoder_text.left_out covers it */
};

struct ready_text {
	int64_t first;      /* of its sequences */
	int32_t count;      /* sequences: 1, or windows */
	int32_t cut;        /* tokens left out */
	int64_t line;       /* number in its file, from 1 */
	size_t id, id_size; /* its "id" as JSON text in text_chunk.ids_text; size 0: it has none */
};

struct text_counts {
	int64_t texts, tokens;   /* tokens with [CLS] and [SEP], of all windows */
	int64_t empty;           /* texts without a token */
	int64_t cut, cut_tokens; /* texts that were cut, and what was left out */
	int64_t cut_lines;       /* lines longer than the line stream reads */
	int64_t windowed;        /* texts in several windows */
	int64_t invalid_bytes;   /* that were no UTF-8 */
	int64_t words, unknown;  /* tokens without [CLS] and [SEP], of each text once; those that are [UNK] */
};
void text_counts_add(struct text_counts *sum, const struct text_counts *part);
/* Says on standard error what was not as a person would expect, each only where there was some. */
void text_counts_log(const struct text_counts *counts, const struct text_settings *settings);

/* A line_chunk's own. Zero-initialise. */
struct text_chunk {
	struct ready_text *texts; /* [text_count] in the order of the lines */
	int64_t text_count;
	struct encoder_text *sequences; /* [sequence_count] */
	int32_t *window_starts;         /* [sequence_count] tokens of its text before a window's first */
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
/* Makes the texts of a chunk; one that cannot be used is ERR_DATA with file and line. Blank lines between JSON objects are passed
 * over. */
MUST_USE enum status text_chunk_make(struct text_chunk *texts, const struct line_chunk *chunk,
				     const struct text_settings *settings);
void text_chunk_release(struct text_chunk *texts);

#endif
