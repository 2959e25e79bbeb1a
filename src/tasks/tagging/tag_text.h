/* Files of tagged words combined into one text: what the tagging task reads. */
#ifndef TASKS_TAGGING_TAG_TEXT_H
#define TASKS_TAGGING_TAG_TEXT_H

#include "base/string_store.h"
#include "formats/conll.h"
#include "tasks/tagging/tag_words.h"
#include "tasks/tagging/tags.h"
#include "tasks/task.h"

/* The task's own settings: found in training, recorded for later. */
struct tagging_settings {
	enum tag_words words; /* of running text */
	struct tag_form tags; /* of words, as in files; separator 0: unknown, taken from the labels of the model */
};
static inline struct tagging_settings *tagging_settings(const struct task_state *state)
{
	return state->own;
}

/* The words of a set, its files concatenated. */
struct tag_text {
	struct conll *files;
	int64_t *first_words, *first_sentences; /* [file_count + 1] */
	int64_t file_count, sentence_count, word_count;
	int64_t *starts;    /* [sentence_count + 1] first word of each sentence */
	const char **texts; /* [sentence_count] the text, or the words separated by spaces */
	bool *running;      /* [sentence_count] it was a text, which has been cut into words */
	const char **ids;   /* [id_count] the id of each sentence as JSON, or NULL; later sentences have none */
	const char **words; /* [word_count] */
	int64_t *begins;    /* [word_count] byte offset in its sentence's text */
	const char **tags;  /* [word_count] as in the file, later in the model's form; NULL: the files have none */
	int64_t *items;     /* [word_count] item of the head; -1: the word has no pieces */
	int32_t *gold;      /* [word_count] index in `names` */
	const char **names; /* [name_count] the labels as measure_entities() takes them, then "O" and tags that are not labels */
	int32_t name_count;
	int32_t outside; /* index of the tag given to words without pieces */
	struct string_store strings;
	int64_t name_room, start_capacity, text_capacity, running_capacity, id_count, id_capacity, word_capacity, begin_capacity;
};

/* Reads files with one word per line; for TASK_PREDICT, which ignores tags, also files with one sentence per line, cut into words
 * by tag_words.h. Training determines the kind of words, and the scheme of the tags (tagging_settings()). Tags that do not fit
 * the scheme are ERR_DATA with file and line. */
MUST_USE enum status tag_text_read(struct tag_text **out, struct task_state *state, enum task_use use, const char *const *paths,
				   int64_t count);
/* The same from memory, for TASK_PREDICT: each text is one sentence, whatever it contains. */
MUST_USE enum status tag_text_take(struct tag_text **out, const struct task_state *state, const struct task_text *texts,
				   int64_t count);
/* Keeps only the first `most` sentences. */
void tag_text_keep(struct tag_text *text, int64_t most);
void tag_text_free(struct tag_text *text);
/* File and line of a word; the file name lives as long as the text. */
void tag_text_place(const struct tag_text *text, int64_t word, const char **out_file, int64_t *out_line);

/* Adds what `text` would score if each word had the tag that it has most often in `train`, and unknown words none (as words
 * without pieces). Both have gold tags of the same labels, which mark entities. */
MUST_USE enum status tag_baseline(const struct tag_text *train, const struct tag_text *text, struct measures *out);

/* What cuts running text into words, to be released. In training, whose kind of words is not known yet: the tokenizer's. */
struct tag_cutter tagging_cutter(const struct task_state *state);

/* How the names of the labels are written: IOB2 if trained by bertc; for other models it is detected from the names. */
MUST_USE enum status tags_of_labels(const struct task_state *state, struct tag_form *out);
/* How tags are written in files and results. */
MUST_USE enum status tags_of_files(const struct task_state *state, struct tag_form *out);

#endif
