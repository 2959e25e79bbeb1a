/* Writes the words for a text's blanks as JSON. */
#include "infer/blanks.h"

#include <string.h>

#include "text/decode.h"

const char *blank_word(const struct vocab *vocab, int32_t id, struct buffer *room)
{
	buffer_clear(room);
	if (id < 0 || id >= vocab->count)
		return "[unused row]";
	vocab_decode(vocab, &id, 1, false, room);
	const char *word = buffer_string(room);
	return word + strspn(word, " ");
}

void blanks_put_json(struct json_writer *writer, const char *text, const struct vocab *vocab, int32_t blanks, int32_t k,
		     const int32_t *words, const float *probabilities)
{
	struct buffer word = {0};
	json_open(writer, NULL, '{');
	json_put_string(writer, "text", text);
	json_open(writer, "blanks", '[');
	for (int32_t b = 0; b < blanks; b++) {
		json_open(writer, NULL, '[');
		for (int32_t i = b * k; i < (b + 1) * k; i++) {
			json_open(writer, NULL, '{');
			json_put_string(writer, "token", blank_word(vocab, words[i], &word));
			json_put_integer(writer, "id", words[i]);
			json_put_float(writer, "probability", probabilities[i]);
			json_close(writer);
		}
		json_close(writer);
	}
	json_close(writer);
	json_close(writer);
	buffer_release(&word);
}
