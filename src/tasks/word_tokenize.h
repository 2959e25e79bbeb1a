/* English words as NLTK's word_tokenize cuts them (NLTKWordTokenizer of NLTK 3.10, a line of regular expressions after the
 * Penn Treebank's script), for CMRC 2018's measure.
 *
 * The text is taken as one sentence (word_tokenize's preserve_line=True). Without that NLTK first looks for ends of sentences
 * with a trained model (Punkt), and then also cuts the full stop off sentences in the middle of the text: that model is not
 * here. */
#ifndef TASKS_WORD_TOKENIZE_H
#define TASKS_WORD_TOKENIZE_H

#include <stddef.h>
#include "base/error.h"

/* Calls add(context, word, size) for each word of the text; an error of it ends the work and is returned. */
MUST_USE enum status word_tokenize(const char *text, size_t size,
				   enum status (*add)(void *context, const char *word, size_t size), void *context);

#endif
