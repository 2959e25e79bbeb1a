/* Normalizes answers as each official script does, and counts the words that two of them share. */
#include "tasks/squad/squad_compare.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "tasks/squad/word_tokenize.h"
#include "text/python_text.h"
#include "text/utf8.h"

void squad_comparer_release(struct squad_comparer *comparer)
{
	struct answer_words *const lists[] = {&comparer->predicted, &comparer->gold, &comparer->sorted};
	for (int i = 0; i < 3; i++) {
		buffer_release(&lists[i]->text);
		free(lists[i]->words);
	}
	buffer_release(&comparer->scratch);
	free(comparer->row);
	*comparer = (struct squad_comparer){.row = NULL};
}

static enum status add_word(struct answer_words *out, size_t begin, size_t size)
{
	TRY(memory_grow(&out->words, &out->capacity, out->count + 1, sizeof *out->words, "words of an answer"));
	out->words[out->count++] = (struct answer_word){begin, size};
	return OK;
}

static int compare_words(const char *a, size_t a_size, const char *b, size_t b_size)
{
	int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
	return order ? order : (a_size > b_size) - (a_size < b_size);
}

static bool same_word(const struct answer_words *a, int64_t i, const struct answer_words *b, int64_t j)
{
	return a->words[i].size == b->words[j].size &&
	       memcmp(a->text.data + a->words[i].begin, b->text.data + b->words[j].begin, a->words[i].size) == 0;
}

/* ---- SQuAD ---- */

static bool is_article(const char *word, size_t size)
{
	return (size == 1 && word[0] == 'a') || (size == 2 && memcmp(word, "an", 2) == 0) ||
	       (size == 3 && memcmp(word, "the", 3) == 0);
}

/* string.punctuation */
static bool is_ascii_punctuation(char c)
{
	return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

static void remove_punctuation(struct buffer *text)
{
	size_t kept = 0;
	for (size_t i = 0; i < text->size; i++)
		if (!is_ascii_punctuation(text->data[i]))
			text->data[kept++] = text->data[i];
	text->size = kept;
}

/* Bytes of the run of word characters at the beginning of the text; 0: there is none. */
static size_t run_of_letters(const char *text, size_t size)
{
	size_t at = 0;
	while (at < size) {
		uint32_t c;
		size_t length = utf8_decode(text + at, size - at, &c);
		if (c == UTF8_INVALID || !python_is_word(c))
			break;
		at += length;
	}
	return at;
}

/* Copies the text, replacing each article and white space character by a space. */
static void remove_articles(struct buffer *out, const struct buffer *text)
{
	for (size_t at = 0; at < text->size;) {
		size_t run = run_of_letters(text->data + at, text->size - at);
		uint32_t c;
		if (run > 0) {
			if (is_article(text->data + at, run))
				buffer_char(out, ' ');
			else
				buffer_append(out, text->data + at, run);
			at += run;
			continue;
		}
		size_t length = utf8_decode(text->data + at, text->size - at, &c);
		if (c != UTF8_INVALID && python_is_space(c))
			buffer_char(out, ' ');
		else
			buffer_append(out, text->data + at, length);
		at += length;
	}
}

/* normalize_answer of the official scripts, followed by splitting into words. */
static enum status normalize(struct buffer *scratch, const char *text, struct answer_words *out)
{
	buffer_clear(scratch);
	buffer_clear(&out->text);
	out->count = 0;
	python_lower(scratch, text, strlen(text));
	TRY(buffer_status(scratch));
	remove_punctuation(scratch);
	remove_articles(&out->text, scratch);
	TRY(buffer_status(&out->text));
	for (size_t at = 0; at < out->text.size;) {
		size_t end = at;
		while (end < out->text.size && out->text.data[end] != ' ')
			end++;
		if (end > at)
			TRY(add_word(out, at, end - at));
		at = end + 1;
	}
	return OK;
}

/* Insertion sort: there are few words, and qsort() takes no context. */
static void sort_words(const char *text, struct answer_word *words, int64_t count)
{
	for (int64_t i = 1; i < count; i++) {
		struct answer_word word = words[i];
		int64_t j = i;
		for (; j > 0 && compare_words(text + words[j - 1].begin, words[j - 1].size, text + word.begin, word.size) > 0;
		     j--)
			words[j] = words[j - 1];
		words[j] = word;
	}
}

enum status squad_comparer_set(struct squad_comparer *comparer, const char *predicted)
{
	struct answer_words *words = &comparer->predicted, *sorted = &comparer->sorted;
	TRY(normalize(&comparer->scratch, predicted, words));
	TRY(memory_grow(&sorted->words, &sorted->capacity, words->count, sizeof *words->words, "words of an answer"));
	sorted->count = words->count;
	if (words->count > 0)
		memcpy(sorted->words, words->words, (size_t)words->count * sizeof *words->words);
	sort_words(words->text.data, sorted->words, sorted->count);
	return OK;
}

static bool same_words(const struct answer_words *a, const struct answer_words *b)
{
	for (int64_t i = 0; i < a->count && i < b->count; i++)
		if (!same_word(a, i, b, i))
			return false;
	return a->count == b->count;
}

static double f1_of(int64_t same, int64_t predicted, int64_t gold)
{
	if (same == 0)
		return 0;
	double precision = 1.0 * (double)same / (double)predicted, recall = 1.0 * (double)same / (double)gold;
	return (2 * precision * recall) / (precision + recall);
}

enum status squad_compare(struct squad_comparer *comparer, const char *gold, bool version_2, struct squad_score *out,
			  bool *out_has_words)
{
	const struct answer_words *predicted = &comparer->predicted, *sorted = &comparer->sorted;
	struct answer_words *words = &comparer->gold;
	int64_t same = 0;
	TRY(normalize(&comparer->scratch, gold, words));
	*out_has_words = words->count > 0;
	out->exact = same_words(words, predicted);
	if (version_2 && (words->count == 0 || predicted->count == 0)) {
		out->f1 = words->count == predicted->count;
		return OK;
	}
	sort_words(words->text.data, words->words, words->count);
	for (int64_t i = 0, j = 0; i < words->count && j < sorted->count;) {
		int order = compare_words(words->text.data + words->words[i].begin, words->words[i].size,
					  predicted->text.data + sorted->words[j].begin, sorted->words[j].size);
		same += order == 0;
		i += order <= 0;
		j += order >= 0;
	}
	out->f1 = f1_of(same, predicted->count, words->count);
	return OK;
}

/* ---- CMRC 2018 ---- */

/* The marks that the script removes. Its list also contains an ellipsis of two characters, which never equals a single one. */
static bool is_removed_mark(uint32_t c)
{
	static const uint32_t marks[] = {'-',    ':',    '_',    '*',    '^',    '/',    '\\',   '~',    '`',    '+',    '=',
					 0xFF0C, 0x3002, 0xFF1A, 0xFF1F, 0xFF01, 0x201C, 0x201D, 0xFF1B, 0x2019, 0x300A, 0x300B,
					 0xB7,   0x3001, 0x300C, 0x300D, 0xFF08, 0xFF09, 0xFF0D, 0xFF5E, 0x300E, 0x300F};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (c == marks[i])
			return true;
	return false;
}

/* Puts the text into `out` in lower case, without marks and without white space at the ends. */
static enum status clean_chinese(struct buffer *scratch, const char *text, struct buffer *out)
{
	buffer_clear(scratch);
	buffer_clear(out);
	python_lower(scratch, text, strlen(text));
	TRY(buffer_status(scratch));
	const char *lower = buffer_string(scratch);
	size_t begin = 0, end = scratch->size;
	uint32_t c;
	for (size_t length; begin < end; begin += length) {
		length = utf8_decode(lower + begin, end - begin, &c);
		if (c == UTF8_INVALID || !python_is_space(c))
			break;
	}
	for (size_t length; end > begin; end -= length) {
		length = utf8_decode_last(lower + begin, end - begin, &c);
		if (c == UTF8_INVALID || !python_is_space(c))
			break;
	}
	for (size_t at = begin, length; at < end; at += length) {
		length = utf8_decode(lower + at, end - at, &c);
		if (!is_removed_mark(c))
			buffer_append(out, lower + at, length);
	}
	return buffer_status(out);
}

static enum status add_segment(void *context, const char *word, size_t size)
{
	struct answer_words *out = context;
	TRY(add_word(out, out->text.size, size));
	buffer_append(&out->text, word, size);
	return buffer_status(&out->text);
}

/* Splits text into single ideographs, and what is between them by NLTK's rules for English. */
static enum status cut_segments(const struct buffer *text, struct answer_words *out)
{
	size_t run = 0;
	const char *bytes = buffer_string(text);
	out->count = 0;
	buffer_clear(&out->text);
	for (size_t at = 0, length; at < text->size; at += length) {
		uint32_t c;
		length = utf8_decode(bytes + at, text->size - at, &c);
		if (c < 0x4E00 || c > 0x9FA5)
			continue;
		if (at > run)
			TRY(word_tokenize(bytes + run, at - run, add_segment, out));
		TRY(add_segment(out, bytes + at, length));
		run = at + length;
	}
	return text->size > run ? word_tokenize(bytes + run, text->size - run, add_segment, out) : OK;
}

/* Length of the longest common run of segments. */
static enum status longest_run(struct squad_comparer *comparer, int64_t *out)
{
	const struct answer_words *a = &comparer->gold, *b = &comparer->predicted;
	*out = 0;
	TRY(memory_grow(&comparer->row, &comparer->row_capacity, b->count + 1, sizeof *comparer->row, "segments of an answer"));
	memset(comparer->row, 0, (size_t)(b->count + 1) * sizeof *comparer->row);
	for (int64_t i = 0; i < a->count; i++)
		for (int64_t j = b->count; j > 0; j--) {
			comparer->row[j] = same_word(a, i, b, j - 1) ? comparer->row[j - 1] + 1 : 0;
			if (comparer->row[j] > *out)
				*out = comparer->row[j];
		}
	return OK;
}

enum status squad_compare_chinese(struct squad_comparer *comparer, const char *gold, const char *predicted,
				  struct squad_score *out)
{
	struct buffer clean = {0}, clean_gold = {0};
	int64_t run;
	enum status status;
	TRY_GOTO(clean_chinese(&comparer->scratch, predicted, &clean), out);
	TRY_GOTO(clean_chinese(&comparer->scratch, gold, &clean_gold), out);
	TRY_GOTO(cut_segments(&clean, &comparer->predicted), out);
	TRY_GOTO(cut_segments(&clean_gold, &comparer->gold), out);
	TRY_GOTO(longest_run(comparer, &run), out);
	out->f1 = f1_of(run, comparer->predicted.count, comparer->gold.count);
	out->exact = clean.size == clean_gold.size && memcmp(buffer_string(&clean), buffer_string(&clean_gold), clean.size) == 0;
out:
	buffer_release(&clean);
	buffer_release(&clean_gold);
	return status;
}
