/* Files of tagged words as one text: what the task of tagging reads. */
#ifndef TASKS_TAG_TEXT_H
#define TASKS_TAG_TEXT_H

#include "base/string_store.h"
#include "formats/conll.h"
#include "tasks/tags.h"
#include "tasks/task.h"

/* The words of a set, all files one behind the other. */
struct tag_text {
	struct conll *files;
	int64_t *first_words, *first_sentences; /* [file_count + 1] */
	int64_t file_count, file_room, sentence_count, word_count;
	int64_t *starts;    /* [sentence_count + 1] first word of each sentence */
	const char **texts; /* [sentence_count] the line, or the words with spaces between */
	const char **words; /* [word_count] */
	int64_t *begins;    /* [word_count] byte of its sentence's text */
	const char **tags;  /* [word_count] as in the file, then as the model has them; NULL: the files have none */
	int64_t *items;     /* [word_count] of the head; -1: the word has no piece */
	int32_t *gold;      /* [word_count] index in names */
	const char **names; /* [name_count] the labels as measure_entities() knows them, then "O" and tags that are no labels */
	int32_t name_count;
	int32_t outside; /* index of the tag of words without a piece */
	struct string_store strings;
	int64_t name_room, start_capacity, text_capacity, word_capacity, begin_capacity;
};

/* Reads files with one word per line; for TASK_PREDICT, where tags are passed over, also files with one sentence per line, whose
 * words are as those of training (state->settings.words). Training finds that, and the scheme of the tags (state->settings.tags).
 * Tags that are not in the scheme are ERR_DATA with file and line. */
MUST_USE enum status tag_text_read(struct tag_text **out, struct task_state *state, enum task_use use, const char *const *paths,
				   int64_t count);
/* The same from memory, for TASK_PREDICT: each text is a sentence, and nothing in it ends one. */
MUST_USE enum status tag_text_take(struct tag_text **out, const struct task_state *state, const struct task_text *texts,
				   int64_t count);
void tag_text_free(struct tag_text *text);
/* Where a word stands; the name lives as long as the text. */
void tag_text_place(const struct tag_text *text, int64_t word, const char **out_file, int64_t *out_line);

/* How the names of the labels are written: IOB2 after training here; what models from elsewhere have is found in them. */
MUST_USE enum status tags_of_labels(const struct task_state *state, struct tag_form *out);
/* How files are written, and results. */
MUST_USE enum status tags_of_files(const struct task_state *state, struct tag_form *out);

#endif
