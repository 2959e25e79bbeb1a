/* What a model is asked about. */
#ifndef INFER_TEXT_INPUT_H
#define INFER_TEXT_INPUT_H

#include <stdint.h>

/* A text, or two, or ids. All pointers are borrowed. */
struct text_input {
	const char *text, *pair; /* pair NULL: none. Of questions about paragraphs, question and paragraph */
	const int32_t *ids;      /* in place of text: [id_count] */
	int64_t id_count;
};

#endif
