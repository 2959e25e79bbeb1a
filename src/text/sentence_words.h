/* Lists of words that help decide whether a period ends a sentence. Internal to src/text. */
#ifndef TEXT_SENTENCE_WORDS_H
#define TEXT_SENTENCE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define SENTENCE_WORD_BYTES 16 /* no list has longer words */

/* Abbreviations of English, and those of other European languages that are not English words. */
enum abbreviation {
	ABBREVIATION_NONE,
	ABBREVIATION_NEVER,  /* never ends a sentence: Mr. */
	ABBREVIATION_NUMBER, /* an abbreviation before a number, otherwise an ordinary word: No. */
	ABBREVIATION_MAYBE,  /* ends a sentence if a frequent first word follows: etc. */
	ABBREVIATION_STATE,  /* a state of the USA: after a place and a comma, it ends a sentence before any capitalized word */
};
enum abbreviation sentence_abbreviation(const char *word, size_t size);
/* True if the word often begins a sentence. */
bool sentence_starter(const char *word, size_t size);
/* True if it may follow a German ordinal number: 3. Oktober. */
bool sentence_ordinal_noun(const char *word, size_t size);
/* True for a short English word that may end a sentence before a number: "It is hot. 30 degrees". */
bool sentence_short_word(const char *word, size_t size);
/* True for how a drug is administered ("i.v"): before a capitalized word, the sentence has ended. */
bool sentence_dose_word(const char *word, size_t size);

#endif
