/* Turns token ids back into text, joining pieces and contractions as Hugging Face's tokenizers do. */
#include "text/decode.h"

#include <stdio.h>
#include <string.h>
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/chain.h"

static const char *const glued[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};

static bool is_glued(const char *text)
{
	for (size_t i = 0; i < sizeof glued / sizeof *glued; i++)
		if (strncmp(text, glued[i], strlen(glued[i])) == 0)
			return true;
	return false;
}

/* "<0x0A>" is a byte. */
static bool is_byte(const char *text, size_t size, char *out)
{
	unsigned value;
	int end = 0;
	if (size != strlen("<0x0A>") || sscanf(text, "<0x%2X>%n", &value, &end) != 1 || end != (int)size)
		return false;
	*out = (char)value;
	return true;
}

/* Appends an entry with a space for each mark of one, which is left out at the very beginning. */
static void put_marked(const char *text, size_t size, bool first, struct buffer *out)
{
	static const char mark[] = "\xE2\x96\x81";
	for (size_t at = 0; at < size;) {
		bool is_mark = size - at >= 3 && memcmp(text + at, mark, 3) == 0;
		if (is_mark && !(first && at == 0))
			buffer_char(out, ' ');
		else if (!is_mark)
			buffer_char(out, text[at]);
		at += is_mark ? 3 : 1;
	}
}

static void decode_chain(const struct vocab *vocab, const int32_t *ids, int64_t count, struct buffer *out)
{
	enum decoding decoding = vocab->chain->decoding;
	for (int64_t i = 0; i < count; i++) {
		const char *text = vocab->text[ids[i]];
		size_t size = vocab->size[ids[i]];
		char byte, *room = decoding == DECODE_BYTES ? buffer_room(out, size) : NULL;
		int64_t bytes = room ? byte_level_bytes(text, size, room) : -1;
		if (decoding == DECODE_JOIN && i > 0)
			buffer_char(out, ' ');
		if (bytes >= 0)
			buffer_advance(out, (size_t)bytes);
		else if (decoding == DECODE_SENTENCEPIECE && is_byte(text, size, &byte))
			buffer_char(out, byte);
		else if (decoding == DECODE_SENTENCEPIECE || decoding == DECODE_METASPACE)
			put_marked(text, size, i == 0, out);
		else
			buffer_append(out, text, size);
	}
}

void vocab_decode(const struct vocab *vocab, const int32_t *ids, int64_t count, struct buffer *out)
{
	if (vocab->chain && vocab->chain->decoding != DECODE_WORDPIECE) {
		decode_chain(vocab, ids, count, out);
		return;
	}
	for (int64_t i = 0; i < count; i++) {
		const char *text = vocab->text[ids[i]];
		size_t size = vocab->size[ids[i]];
		if (i == 0) { /* a continuation at the very beginning keeps its ## */
			buffer_append(out, text, size);
		} else if (vocab->is_continuation[ids[i]]) {
			buffer_append(out, text + strlen(vocab->prefix), size - strlen(vocab->prefix));
		} else {
			if (!is_glued(text))
				buffer_char(out, ' ');
			buffer_append(out, text, size);
		}
	}
}
