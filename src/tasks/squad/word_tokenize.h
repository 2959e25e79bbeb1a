/* English words as NLTK's word_tokenize splits them (NLTKWordTokenizer of NLTK 3.10, a series of regular expressions modeled on
 * the Penn Treebank's script), for CMRC 2018's measure.
 *
 * The text is treated as one sentence (word_tokenize's preserve_line=True). Without that, NLTK first finds the ends of sentences
 * with a trained model (Punkt), which is not available here, and then also splits off periods in the middle of the text. */
#ifndef TASKS_SQUAD_WORD_TOKENIZE_H
#define TASKS_SQUAD_WORD_TOKENIZE_H

#include <stddef.h>
#include "base/error.h"

/* Calls add(context, word, size) for each word of the text; an error from it stops the work and is returned. */
MUST_USE enum status word_tokenize(const char *text, size_t size,
				   enum status (*add)(void *context, const char *word, size_t size), void *context);

#endif
