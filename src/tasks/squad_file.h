/* Files in the form of SQuAD 1.1 and 2.0, which CMRC 2018, DRCD, XQuAD and COVID-QA share:
 *   {"version", "data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "is_impossible",
 *     "answers": [{"text", "answer_start"}]}]}]}]}
 * or objects with "id" (else they are counted), "context", "question" and "answers", here also {"text": [...],
 * "answer_start": [...]}, in a list, in {"data": [...]}, or a line each: Hugging Face's form.
 * Everything else in them is passed over. Articles, paragraphs, questions and answers keep the order of the file. */
#ifndef TASKS_SQUAD_FILE_H
#define TASKS_SQUAD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/string_store.h"
#include "formats/bad_records.h"

/* Is the answer where the file says? */
enum squad_place {
	SQUAD_FOUND,     /* the paragraph has the text at `start` */
	SQUAD_NEAR,      /* the words there contain it, but for white space: good enough for Google's scripts, and for training */
	SQUAD_SHIFTED,   /* it stands at most three characters off, and is taken from there: `start` is mended */
	SQUAD_ELSEWHERE, /* the paragraph has the text, but not there */
	SQUAD_ABSENT,    /* the paragraph does not have the text at all */
};

struct squad_answer {
	const char *text; /* as in the file; UTF-8 */
	int64_t text_size;
	int64_t start;      /* answer_start, in code points from the beginning of the paragraph; -1: the file has none */
	int64_t start_byte; /* the same in bytes; meaningful if SQUAD_FOUND or SQUAD_SHIFTED */
	enum squad_place place;
};

struct squad_question {
	const char *id; /* never empty, no two alike in a set; a number in the file is its digits; NULL: not from a file */
	const char *text;
	int64_t text_size;
	int64_t paragraph;                  /* index in `paragraphs` */
	int64_t first_answer, answer_count; /* in `answers`; 0 answers: none is given, or it is impossible */
	bool is_impossible;                 /* SQuAD 2.0: the paragraph does not answer it */
};

struct squad_paragraph {
	const char *text;          /* "context" */
	int64_t text_size, length; /* bytes, code points */
	int64_t article;           /* index among the file's articles, from 0 */
	const char *title;         /* of the article; "" if it has none */
	int64_t first_question, question_count;
};

struct squad_set {
	struct squad_paragraph *paragraphs;
	struct squad_question *questions;
	struct squad_answer *answers;
	int64_t article_count, paragraph_count, question_count, answer_count;
	int64_t impossible_count; /* questions that are impossible */
	int64_t unlabelled_count; /* questions that have no answer and are not said to be impossible */
	int64_t near_count, shifted_count, elsewhere_count, absent_count; /* answers by `place` */
	int64_t byte_count, utf16_count; /* answers elsewhere that are there if answer_start counts bytes, or units of UTF-16 */
	const char *version;             /* as in the file; "" if there is none */
	struct string_store strings;     /* owns all text */
	int64_t paragraph_capacity, question_capacity; /* private */
};

/* What a set is for decides what it must have. */
enum squad_use {
	SQUAD_TRAIN,   /* each question has an answer where the file says, or is impossible: anything else is a bad record */
	SQUAD_SCORE,   /* each question has answers or is impossible; where they stand does not matter to scores */
	SQUAD_PREDICT, /* only texts, questions and ids matter */
};

struct squad_options {
	enum squad_use use;
	bool allow_impossible; /* --version_2_with_negative; without it an impossible question is a bad record of SQUAD_TRAIN */
	struct bad_records *bad;
};

/* Reads a file (packed or not, "-" for standard input) into `out`, which is empty after an error. ERR_DATA names the file
 * and, for what is wrong with one question, its id. Questions that are bad records are left out and counted under "skip":
 * for SQUAD_TRAIN also those of whose answers none is found where it should be, or near or shifted (of the others such answers
 * alone are left out). Says in the log what was found, and how many answers are not where the file says. */
MUST_USE enum status squad_read(struct squad_set *out, const char *path, const struct squad_options *options);
/* Appends a question about a paragraph from memory, which the set copies. `set` is zeroed at first. */
MUST_USE enum status squad_add(struct squad_set *set, const char *question, const char *paragraph);
void squad_release(struct squad_set *set);
/* Can it be learned where the answer is? */
static inline bool squad_is_placed(const struct squad_answer *answer)
{
	return answer->place <= SQUAD_SHIFTED;
}

#endif
