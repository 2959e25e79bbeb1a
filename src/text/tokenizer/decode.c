/* Turns token ids back into text, joining pieces and contractions as Hugging Face's tokenizers do. */
#include "text/decode.h"

#include <string.h>

static const char *const glued[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};

static bool is_glued(const char *text)
{
	for (size_t i = 0; i < sizeof glued / sizeof *glued; i++)
		if (strncmp(text, glued[i], strlen(glued[i])) == 0)
			return true;
	return false;
}

void vocab_decode(const struct vocab *vocab, const int32_t *ids, int64_t count, struct buffer *out)
{
	for (int64_t i = 0; i < count; i++) {
		const char *text = vocab->text[ids[i]];
		size_t size = vocab->size[ids[i]];
		if (i == 0) { /* a continuation at the very beginning keeps its ## */
			buffer_append(out, text, size);
		} else if (vocab->is_continuation[ids[i]]) {
			buffer_append(out, text + 2, size - 2);
		} else {
			if (!is_glued(text))
				buffer_char(out, ' ');
			buffer_append(out, text, size);
		}
	}
}
