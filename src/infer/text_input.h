/* The input of a model. */
#ifndef INFER_TEXT_INPUT_H
#define INFER_TEXT_INPUT_H

#include <stdint.h>

/* One text, a pair of texts, or token ids. All pointers are borrowed. */
struct text_input {
	const char *text, *pair; /* pair NULL: none. For questions about paragraphs: question and paragraph */
	const int32_t *ids;      /* [id_count] in place of text */
	int64_t id_count;
};

#endif
