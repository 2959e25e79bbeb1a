/* Files in the form of SQuAD 1.1 and 2.0, which CMRC 2018, DRCD, XQuAD and COVID-QA share:
 *   {"version", "data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "is_impossible",
 *     "answers": [{"text", "answer_start"}]}]}]}]}
 * or Hugging Face's form: objects with "id" (else they are numbered), "context", "question" and "answers", which may also be
 * {"text": [...], "answer_start": [...]}; in a list, in {"data": [...]}, or one per line. Everything else in them is ignored.
 * Articles, paragraphs, questions and answers keep the order of the file. */
#ifndef TASKS_SQUAD_SQUAD_FILE_H
#define TASKS_SQUAD_SQUAD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/string_store.h"
#include "formats/bad_records.h"

/* Is the answer where the file says it is? */
enum squad_place {
	SQUAD_FOUND,   /* the paragraph has the text at `start` */
	SQUAD_NEAR,    /* the words there contain it, ignoring white space: good enough for Google's scripts, and for training */
	SQUAD_SHIFTED, /* it is at most three characters off and is taken from there: `start` is corrected */
	SQUAD_ELSEWHERE, /* the paragraph has the text, but not there */
	SQUAD_ABSENT,    /* the paragraph does not have the text at all */
};

struct squad_answer {
	const char *text; /* as in the file; UTF-8 */
	int64_t text_size;
	int64_t start;      /* answer_start, in code points from the beginning of the paragraph; -1: the file has none */
	int64_t start_byte; /* the same in bytes; only meaningful for SQUAD_FOUND and SQUAD_SHIFTED */
	enum squad_place place;
};

struct squad_question {
	const char *id; /* never empty, unique in a set; a number in the file is taken as its digits; NULL: not from a file */
	const char *text;
	int64_t text_size;
	int64_t paragraph;                  /* index in `paragraphs` */
	int64_t first_answer, answer_count; /* range of `answers`; 0 answers: none is given, or it is impossible */
	bool is_impossible;                 /* SQuAD 2.0: the paragraph does not contain an answer */
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
	int64_t impossible_count; /* number of impossible questions */
	int64_t unlabeled_count;  /* number of questions without an answer that are not marked as impossible */
	int64_t near_count, shifted_count, elsewhere_count, absent_count; /* numbers of answers by `place` */
	int64_t byte_count, utf16_count; /* answers elsewhere that are right if answer_start counts bytes, or UTF-16 units */
	const char *version;             /* as in the file; "" if there is none */
	struct string_store strings;     /* owns all text */
	int64_t paragraph_capacity, question_capacity; /* private */
};

/* What a set is used for, which determines what it must contain. */
enum squad_use {
	SQUAD_TRAIN, /* each question has an answer where the file says it is, or is impossible: anything else is a bad record */
	SQUAD_SCORE, /* each question has answers or is impossible; scores do not depend on where they are */
	SQUAD_PREDICT, /* only texts, questions and ids matter */
};

struct squad_options {
	enum squad_use use;
	bool allow_impossible; /* --version_2_with_negative; without it an impossible question is a bad record, except for
				  SQUAD_PREDICT */
	struct bad_records *bad;
};

/* Reads a file (compressed or not, "-" for standard input) into `out`, which is empty after an error. ERR_DATA names the file
 * and, if a question is at fault, its id. Questions that are bad records are left out and counted under "skip"; for SQUAD_TRAIN
 * also those none of whose answers is SQUAD_FOUND, SQUAD_NEAR or SQUAD_SHIFTED (if that is true of only some answers, just these
 * are left out). Logs what was found, and how many answers are not where the file says. */
MUST_USE enum status squad_read(struct squad_set *out, const char *path, const struct squad_options *options);
/* Appends a question about a paragraph, given in memory; the set copies both. `set` is zero-initialized before the first call. */
MUST_USE enum status squad_add(struct squad_set *set, const char *question, const char *paragraph);
/* Keeps only the first `most` questions. */
void squad_keep(struct squad_set *set, int64_t most);
void squad_release(struct squad_set *set);
/* Is the answer's place known, so that it can be learned? */
static inline bool squad_is_placed(const struct squad_answer *answer)
{
	return answer->place <= SQUAD_SHIFTED;
}

#endif
