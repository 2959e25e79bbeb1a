/* Recognizes Project Gutenberg's books and drops their license text. */
#include "text/gutenberg.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define LOOK ((size_t)64 << 10) /* the start mark is in the first pages */

static bool has(const char *line, size_t size, const char *words)
{
	return memmem(line, size, words, strlen(words)) != NULL;
}

static bool starts(const char *line, size_t size, const char *prefix)
{
	return size >= strlen(prefix) && strncasecmp(line, prefix, strlen(prefix)) == 0;
}

/* "*** START OF THE PROJECT GUTENBERG EBOOK ... ***"; books from the nineties have the end of the small print instead. */
static bool is_begin(const char *line, size_t size)
{
	if (size < 3 || line[0] != '*')
		return false;
	return ((has(line, size, "START OF TH") || has(line, size, "START OF PROJECT")) && has(line, size, "GUTENBERG")) ||
	       has(line, size, "*END*THE SMALL PRINT") || has(line, size, "*END THE SMALL PRINT");
}

static bool is_end(const char *line, size_t size)
{
	if (size > 2 && line[0] == '*' && has(line, size, "END OF TH") && has(line, size, "GUTENBERG"))
		return true;
	return size < 200 &&
	       (starts(line, size, "End of Project Gutenberg") || starts(line, size, "End of the Project Gutenberg") ||
		starts(line, size, "End of this Project Gutenberg"));
}

size_t gutenberg_begin(const char *beginning, size_t size)
{
	size = size < LOOK ? size : LOOK;
	for (size_t at = 0; at < size;) {
		const char *newline = memchr(beginning + at, '\n', size - at);
		size_t end = newline ? (size_t)(newline - beginning) : size;
		if (is_begin(beginning + at, end - at))
			return end;
		at = end + 1;
	}
	return 0;
}

bool gutenberg_recognize(const char *beginning, size_t size)
{
	return gutenberg_begin(beginning, size) > 0;
}

static bool is_blank(const char *line, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!isspace((unsigned char)line[i]))
			return false;
	return true;
}

/* A line that credits who made the file, in the paragraphs before the book. */
static bool is_credit(const char *line, size_t size)
{
	return starts(line, size, "Produced by") || starts(line, size, "E-text prepared by") ||
	       starts(line, size, "This etext was") || starts(line, size, "This eBook was produced") ||
	       starts(line, size, "Credits:") || starts(line, size, "Transcribed from") ||
	       starts(line, size, "Transcriber's Note") || starts(line, size, "[Transcriber") ||
	       starts(line, size, "Note: Project Gutenberg") || starts(line, size, "Note: Images of");
}

/* Removes the marks of _italics_ and =bold=. A '_' or '=' within a word stays, and one by itself: x = y. */
static size_t drop_marks(const char *line, size_t size, char *out)
{
	size_t count = 0;
	for (size_t i = 0; i < size; i++) {
		unsigned char before = i > 0 ? (unsigned char)line[i - 1] : ' ';
		unsigned char after = i + 1 < size ? (unsigned char)line[i + 1] : ' ';
		bool is_text = (isalnum(before) && isalnum(after)) || (isspace(before) && isspace(after));
		if ((line[i] == '_' || line[i] == '=') && !is_text)
			continue;
		out[count++] = line[i];
	}
	return count;
}

bool gutenberg_line(struct gutenberg *state, const char **line, size_t *size)
{
	const char *text = *line;
	size_t count = *size;

	if (!state->within) {
		state->within = is_begin(text, count);
		state->begun = state->credits = state->illustration = false;
		return false;
	}
	if (is_end(text, count)) {
		state->within = false;
		return false;
	}
	bool blank = is_blank(text, count);
	if (state->credits) {
		state->credits = !blank;
		return blank;
	}
	if (!blank && !state->begun && is_credit(text, count)) {
		state->credits = true;
		return false;
	}
	state->begun = state->begun || (!blank && count > 60);
	if (state->illustration || starts(text, count, "[Illustration")) {
		state->illustration = memchr(text, ']', count) == NULL && !blank;
		return blank;
	}
	if (count < sizeof state->line && (memchr(text, '_', count) || memchr(text, '=', count))) {
		*size = drop_marks(text, count, state->line);
		*line = state->line;
	}
	return true;
}
