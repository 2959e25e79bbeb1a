/* Words that tell whether a full stop ends a sentence. Inside src/text. */
#ifndef TEXT_SENTENCE_WORDS_H
#define TEXT_SENTENCE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define SENTENCE_WORD_BYTES 16 /* longer words are in no list */

/* Abbreviations of English, and of other European languages where they are no English words. */
enum abbreviation {
	ABBREVIATION_NONE,
	ABBREVIATION_NEVER,  /* always followed by more: Mr. */
	ABBREVIATION_NUMBER, /* followed by a number, else an ordinary word: No. */
	ABBREVIATION_MAYBE,  /* may end a sentence: a frequent first word must follow: etc. */
	ABBREVIATION_STATE,  /* of the USA: behind a place and a comma, any capitalised word may follow */
};
enum abbreviation sentence_abbreviation(const char *word, size_t size);
/* Does the word often begin a sentence? */
bool sentence_starter(const char *word, size_t size);
/* Does it follow a German ordinal number: 3. Oktober? */
bool sentence_ordinal_noun(const char *word, size_t size);
/* Is it a short English word that may end a sentence before a number: "It is hot. 30 degrees"? */
bool sentence_short_word(const char *word, size_t size);
/* How a drug is given ("i.v"): in front of a capitalised word the sentence has ended. */
bool sentence_dose_word(const char *word, size_t size);

#endif
