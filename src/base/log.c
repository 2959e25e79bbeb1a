/* The bar is one line that is erased and redrawn; printing a line of text erases it first and redraws it afterwards, so that the
 * two never mix. Without a terminal no control characters are written. */
#include "base/log.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/buffer.h"
#include "base/hash.h"
#include "base/text.h"

#define REDRAW_SECONDS 0.1
#define LINE_SECONDS 60
#define CLEAR_LINE "\r\033[K"

enum log_level log_level = LOG_NORMAL;
bool log_progress = true;

/* All output of this file is written under one lock, each line (or bar) in one write. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file, *result_file;
static log_warning_taker *warning_taker;
static void *warning_context;
/* Nested progress (an evaluation during training): the innermost is shown. */
static struct progress *shown[4];
static int shown_count;
static bool bar_drawn;

static pthread_once_t terminal_once = PTHREAD_ONCE_INIT;
static bool is_terminal, has_color, has_unicode;

static void terminal_look(void)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
	is_terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
	has_color = is_terminal && (!no_color || !*no_color);

	/* A locale that names another character set is believed; no locale at all suggests a bare container, whose terminal
	 * supports UTF-8 as all of today's do. */
	const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"}, *locale = NULL;
	for (int i = 0; i < 3 && (!locale || !*locale); i++)
		locale = getenv(names[i]);
	has_unicode = !locale || !*locale || strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
}

bool log_is_terminal(void)
{
	pthread_once(&terminal_once, terminal_look);
	return is_terminal;
}

bool log_has_color(void)
{
	pthread_once(&terminal_once, terminal_look);
	return has_color;
}

static int log_columns(void)
{
	/* Queried each time, so that resizing the window needs no signal handler. */
	struct winsize size;
	if (isatty(STDERR_FILENO) && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 80;
}

/* Failures are ignored: a closed or full standard error must not stop a run. */
static void write_out(const struct buffer *text)
{
	size_t done = 0;
	while (done < text->size) {
		ssize_t wrote = write(STDERR_FILENO, text->data + done, text->size - done);
		if (wrote <= 0)
			break;
		done += (size_t)wrote;
	}
}

/* Length of the color sequence, of those our own tables use, at the beginning of the text; 0 if there is none. */
static size_t color_length(const char *text)
{
	static const char *const colors[] = {"\033[0m", "\033[1m", "\033[2m"};
	for (size_t i = 0; has_color && i < sizeof colors / sizeof *colors; i++)
		if (strncmp(text, colors[i], 4) == 0)
			return 4;
	return 0;
}

/* Appends text in which everything that could affect a terminal, such as in a name from a file, is escaped. A line end in a name
 * could pass for a line of the log; only text of several lines (`lines`) has its own. */
static void append_safely(struct buffer *out, const char *text, bool lines)
{
	size_t size, left = strlen(text);
	for (; left > 0; text += size, left -= size) {
		char one[8], escaped[8];
		bool control = text_is_control((const unsigned char *)text, left, &size);
		if (!control || (lines && *text == '\n') || *text == '\t') {
			buffer_append(out, text, size);
		} else if (color_length(text) > 0) {
			size = color_length(text);
			buffer_append(out, text, size);
		} else {
			snprintf(one, sizeof one, "%.*s", (int)size, text);
			buffer_text(out, text_escape(escaped, sizeof escaped, one, false));
		}
	}
}

/* Number of columns that UTF-8 text takes; wide characters do not occur in what we print. */
static int text_columns(const char *text)
{
	int columns = 0;
	for (; *text; text++)
		columns += ((unsigned char)*text & 0xC0) != 0x80;
	return columns;
}

void log_fold(char *text, int column)
{
	int columns = log_columns(), at_space = 0;
	char *space = NULL;
	bool quoted = false;
	if (!log_is_terminal())
		return;
	for (; *text; text++) {
		size_t color = color_length(text);
		text += color > 0 ? color - 1 : 0;
		column += color == 0 && ((unsigned char)*text & 0xC0) != 0x80;
		quoted ^= *text == '`';
		if (*text == '\n') {
			column = 0;
			space = NULL;
		} else if (*text == ' ' && !quoted) {
			at_space = column;
			space = text;
		} else if (column > columns && space) {
			*space = '\n';
			column -= at_space;
			space = NULL;
		}
	}
}

/* `to` NULL: standard error. The caller holds the lock. */
static void write_line(FILE *to, const char *color, const char *prefix, const char *text, bool lines)
{
	struct buffer line = {0};
	if (bar_drawn)
		buffer_text(&line, CLEAR_LINE);
	bar_drawn = false;
	if (to) {
		write_out(&line);
		line.size = 0;
	}
	bool colored = color && log_has_color();
	buffer_format(&line, "%s%s%s", colored ? color : "", prefix, colored ? "\033[0m" : "");
	size_t begin = line.size;
	append_safely(&line, text, lines);
	buffer_char(&line, '\n');
	if (log_file && line.size >= begin) {
		fprintf(log_file, "%s", prefix);
		for (const char *at = buffer_string(&line) + begin; *at;) {
			size_t colors = color_length(at);
			if (colors == 0)
				fputc(*at++, log_file);
			at += colors;
		}
		fflush(log_file);
	}
	if (line.size >= begin && (!to || isatty(fileno(to))))
		log_fold(line.data + begin, text_columns(prefix));
	if (to) {
		fputs(buffer_string(&line), to);
		fflush(to);
	} else {
		write_out(&line);
	}
	buffer_release(&line);
}

static void bar_draw(void);

/* A format that has a line end itself is for text of several lines; in all others, line ends can only be those of names. */
static void say(FILE *to, const char *color, const char *prefix, const char *format, va_list arguments)
{
	char *text;
	size_t length = strlen(format);
	int size = vasprintf(&text, format, arguments);
	if (size < 0)
		return;
	if (size > 0 && length > 0 && format[length - 1] == '\n')
		text[size - 1] = '\0';
	pthread_mutex_lock(&lock);
	bool redraw = bar_drawn;
	write_line(to, color, prefix, text, strchr(format, '\n') != NULL);
	if (redraw)
		bar_draw();
	pthread_mutex_unlock(&lock);
	free(text);
}

void log_note(const char *format, ...)
{
	if (log_level < LOG_NORMAL)
		return;
	va_list arguments;
	va_start(arguments, format);
	say(NULL, NULL, "", format, arguments);
	va_end(arguments);
}

void log_results_to(FILE *file)
{
	result_file = file;
}

void log_result(const char *format, ...)
{
	if (log_level < LOG_NORMAL)
		return;
	va_list arguments;
	va_start(arguments, format);
	say(result_file, NULL, "", format, arguments);
	va_end(arguments);
}

void log_detail(const char *format, ...)
{
	if (log_level < LOG_VERBOSE)
		return;
	va_list arguments;
	va_start(arguments, format);
	say(NULL, NULL, "", format, arguments);
	va_end(arguments);
}

/* The callback is called outside the lock, since it may wait for locks of its own. */
static bool hand_over(const char *format, va_list arguments)
{
	pthread_mutex_lock(&lock);
	log_warning_taker *take = warning_taker;
	void *context = warning_context;
	pthread_mutex_unlock(&lock);
	char *text;
	if (!take)
		return false;
	if (vasprintf(&text, format, arguments) < 0)
		return true;
	struct buffer safe = {0};
	append_safely(&safe, text, false);
	take(context, buffer_string(&safe));
	buffer_release(&safe);
	free(text);
	return true;
}

void log_warning(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	bool taken = hand_over(format, arguments);
	va_end(arguments);
	if (taken)
		return;
	va_start(arguments, format);
	say(NULL, "\033[33m", "warning: ", format, arguments);
	va_end(arguments);
}

/* The hashes of the warnings that were printed once; more than these are printed again. */
static uint64_t once[256];
static size_t once_count;

void log_warning_once(const char *format, ...)
{
	va_list arguments;
	char *text;
	va_start(arguments, format);
	int size = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (size < 0)
		return;
	uint64_t hash = hash64(text, (size_t)size);
	bool known = false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < once_count && !known && !warning_taker; i++)
		known = once[i] == hash;
	if (!known && once_count < sizeof once / sizeof *once)
		once[once_count++] = hash;
	pthread_mutex_unlock(&lock);
	if (!known)
		log_warning("%s", text);
	free(text);
}

void log_warnings_to(log_warning_taker *take, void *context)
{
	pthread_mutex_lock(&lock);
	warning_taker = take;
	warning_context = context;
	pthread_mutex_unlock(&lock);
}

void log_to_file(const char *path)
{
	pthread_mutex_lock(&lock);
	if (log_file)
		fclose(log_file);
	log_file = path ? fopen(path, "ae") : NULL;
	pthread_mutex_unlock(&lock);
}

/* The texts that a bar and a line have in common. */
struct progress_words {
	char count[160], rate[96], remaining[48];
	double share; /* -1: unknown */
};

/* "steps" -> "step", "queries" -> "query" */
static const char *singular(char out[FORMAT_BYTES], const char *unit)
{
	bool ies = text_ends_with(unit, "ies");
	snprintf(out, FORMAT_BYTES, "%.*s%s", (int)(strlen(unit) - (ies ? 3 : 1)), unit, ies ? "y" : "");
	return out;
}

static struct progress_words progress_describe(const struct progress *progress, double now)
{
	struct progress_words words = {.share = -1};
	char done[FORMAT_BYTES], total[FORMAT_BYTES], text[FORMAT_BYTES], one[FORMAT_BYTES];
	bool bytes = !strcmp(progress->unit, "bytes");
	if (bytes) {
		format_size(done, (double)progress->done);
		format_size(total, (double)progress->total);
	} else {
		format_count(done, progress->done);
		format_count(total, progress->total);
	}
	const char *unit = bytes ? "" : progress->unit;
	if (progress->total > 0) {
		words.share = (double)progress->done / (double)progress->total;
		if (words.share > 1)
			words.share = 1;
		snprintf(words.count, sizeof words.count, "%s/%s%s%s", done, total, *unit ? " " : "", unit);
	} else {
		snprintf(words.count, sizeof words.count, "%s%s%s", done, *unit ? " " : "", unit);
	}

	/* The rate and the ETA are based only on what this process has done. */
	double seconds = now - progress->started;
	double rate = seconds > 0 ? (double)(progress->done - progress->first) / seconds : 0;
	if (rate <= 0 || seconds < 0.01) /* too little to estimate from */
		return words;
	if (bytes)
		snprintf(words.rate, sizeof words.rate, "%s/s", format_size(text, rate));
	else if (rate >= 1000)
		snprintf(words.rate, sizeof words.rate, "%s %s/s", format_count(text, (int64_t)rate), unit);
	else if (rate >= 1)
		snprintf(words.rate, sizeof words.rate, "%.*f %s/s", rate < 100, rate, unit);
	else /* "4.2 s/step" */
		snprintf(words.rate, sizeof words.rate, "%s/%s", format_duration(text, 1 / rate), singular(one, unit));
	if (words.share >= 0)
		snprintf(words.remaining, sizeof words.remaining, "ETA %s",
			 format_duration(text, (double)(progress->total - progress->done) / rate));
	return words;
}

/* Appends a bar of `cells` columns filled to `share`, with a resolution of an eighth of a column. */
static void bar_append(struct buffer *out, int cells, double share)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	int filled = (int)(share * cells * 8);
	buffer_text(out, has_unicode ? "▕" : "[");
	if (has_color)
		buffer_text(out, "\033[36m");
	for (int cell = 0; cell < cells; cell++) {
		int part = filled - cell * 8;
		if (!has_unicode)
			buffer_char(out, part >= 8 ? '#' : '.');
		else
			buffer_text(out, part >= 8 ? "█" : part > 0 ? eighths[part] : " ");
	}
	if (has_color)
		buffer_text(out, "\033[0m");
	buffer_text(out, has_unicode ? "▏" : "]");
}

/* Cells of a bar: the fewest that are meaningful, the number that takes precedence over count and rate, and the most that look
 * good; and the columns around them. */
enum { BAR_LEAST = 4, BAR_USUAL = 10, BAR_MOST = 40, BAR_AROUND = 4 };

/* The parts of the line, in the order shown. */
enum { PART_SHARE, PART_FIRST, PART_PIECES = 10, PART_REMAINING = PART_FIRST + PART_PIECES, PART_COUNT, PART_RATE, PARTS };

/* Splits the caller's text into pieces at double spaces; `copy` is modified. */
static void split_text(char *copy, const char *parts[PARTS])
{
	for (int i = PART_FIRST; i < PART_FIRST + PART_PIECES && *copy; i++) {
		char *end = i == PART_FIRST + PART_PIECES - 1 ? NULL : strstr(copy, "  ");
		parts[i] = copy;
		if (!end)
			return;
		*end = '\0';
		copy = end + 2 + strspn(end + 2, " ");
	}
}

static bool fit(const char *part, int *used, int room)
{
	int columns = text_columns(part) + 2;
	if (!part[0] || *used + columns > room)
		return false;
	*used += columns;
	return true;
}

/* One line, at most as wide as the terminal: title, bar, percentage, the caller's text, time left, count, rate. If they do not
 * all fit, the percentage, the caller's first two pieces (loss and speed), and the time left take precedence over the bar, which
 * narrows first, and the bar takes precedence over the rest. */
static void bar_draw(void)
{
	if (shown_count == 0)
		return;
	struct progress *progress = shown[shown_count - 1];
	double now = clock_seconds();
	struct progress_words words = progress_describe(progress, now);
	char share[16] = "", copy[sizeof progress->text];
	if (words.share >= 0)
		snprintf(share, sizeof share, "%3.0f %%", floor(words.share * 100));

	static const int first[] = {PART_SHARE, PART_FIRST, PART_FIRST + 1, PART_REMAINING};
	const char *parts[PARTS] = {0};
	for (int i = 0; i < PARTS; i++)
		parts[i] = "";
	parts[PART_SHARE] = share;
	parts[PART_REMAINING] = words.remaining;
	parts[PART_COUNT] = words.count;
	parts[PART_RATE] = words.rate;
	memcpy(copy, progress->text, sizeof copy);
	split_text(copy, parts);

	int room = log_columns() - 1, used = text_columns(progress->title), cells = 0;
	bool fits[PARTS] = {false};
	for (size_t i = 0; i < sizeof first / sizeof *first; i++)
		fits[first[i]] = fit(parts[first[i]], &used, room);
	if (words.share >= 0 && used + BAR_LEAST + BAR_AROUND <= room) {
		cells = BAR_LEAST;
		used += BAR_LEAST + BAR_AROUND;
	}
	for (int i = 0; i < PARTS; i++) {
		if (i == PART_COUNT && cells && used + BAR_USUAL - BAR_LEAST <= room) {
			used += BAR_USUAL - BAR_LEAST;
			cells = BAR_USUAL;
		}
		fits[i] = fits[i] || fit(parts[i], &used, room);
	}
	if (cells) {
		cells += room - used;
		if (cells > BAR_MOST)
			cells = BAR_MOST;
	}

	struct buffer line = {0};
	buffer_text(&line, CLEAR_LINE);
	if (has_color)
		buffer_text(&line, "\033[1m");
	buffer_format(&line, "%.*s", room < 0 ? 0 : room, progress->title);
	if (has_color)
		buffer_text(&line, "\033[0m");
	if (cells) {
		buffer_text(&line, "  ");
		bar_append(&line, cells, words.share);
	}
	for (int i = 0; i < PARTS; i++) {
		if (!fits[i])
			continue;
		bool dim = has_color && i >= PART_COUNT;
		buffer_format(&line, "  %s%s%s", dim ? "\033[2m" : "", parts[i], dim ? "\033[0m" : "");
	}
	write_out(&line);
	buffer_release(&line);
	bar_drawn = true;
	progress->drawn = now;
}

void progress_beside_results(void)
{
	struct stat facts;
	if (log_is_terminal() && (isatty(STDOUT_FILENO) || (fstat(STDOUT_FILENO, &facts) == 0 && S_ISFIFO(facts.st_mode))))
		log_progress = false;
}

void progress_start(struct progress *progress, const char *title, int64_t first, int64_t total, const char *unit)
{
	double now = clock_seconds();
	*progress = (struct progress){
		.title = title, .unit = unit, .total = total, .done = first, .first = first, .started = now, .drawn = now};
	pthread_mutex_lock(&lock);
	BUG_IF(shown_count == sizeof shown / sizeof *shown);
	shown[shown_count++] = progress;
	if (log_is_terminal() && log_level > LOG_QUIET && log_progress)
		bar_draw();
	pthread_mutex_unlock(&lock);
}

void progress_update(struct progress *progress, int64_t done, const char *format, ...)
{
	pthread_mutex_lock(&lock);
	progress->done = done;
	double since = clock_seconds() - progress->drawn;
	if (format) {
		va_list arguments;
		va_start(arguments, format);
		char text[sizeof progress->text];
		vsnprintf(text, sizeof text, format, arguments);
		va_end(arguments);
		text_escape(progress->text, sizeof progress->text, text, false);
	}
	if (log_level == LOG_QUIET || !log_progress || shown_count == 0 || shown[shown_count - 1] != progress) {
		/* not shown */
	} else if (log_is_terminal()) {
		if (since >= REDRAW_SECONDS)
			bar_draw();
	} else if (since >= LINE_SECONDS) {
		struct progress_words words = progress_describe(progress, clock_seconds());
		char line[512], share[24] = "";
		if (words.share >= 0)
			snprintf(share, sizeof share, " (%.0f %%)", floor(words.share * 100));
		const char *parts[] = {words.rate, words.remaining, progress->text};
		int length = snprintf(line, sizeof line, "%s: %s%s", progress->title, words.count, share);
		for (int i = 0; i < 3; i++) {
			if (parts[i][0] && (size_t)length < sizeof line)
				length += snprintf(line + length, sizeof line - (size_t)length, ", %s", parts[i]);
		}
		write_line(NULL, NULL, "", line, false);
		progress->drawn = clock_seconds();
	}
	pthread_mutex_unlock(&lock);
}

void progress_finish(struct progress *progress)
{
	pthread_mutex_lock(&lock);
	int at = shown_count - 1;
	while (at >= 0 && shown[at] != progress)
		at--;
	BUG_IF(at < 0);
	for (; at + 1 < shown_count; at++)
		shown[at] = shown[at + 1];
	shown_count--;
	int64_t done = progress->done - progress->first; /* by this process, like the rate */
	if (log_level > LOG_QUIET && done > 0) {
		char duration[FORMAT_BYTES], count[FORMAT_BYTES], one[FORMAT_BYTES], line[512];
		double now = clock_seconds();
		struct progress_words words = progress_describe(progress, now);
		bool bytes = !strcmp(progress->unit, "bytes");
		const char *counted = bytes ? format_size(count, (double)done)
					    : format_counted(count, done, singular(one, progress->unit), progress->unit);
		int length = snprintf(line, sizeof line, "%s: %s in %s", progress->title, counted,
				      format_duration(duration, now - progress->started));
		const char *parts[] = {words.rate, progress->text};
		for (int i = 0; i < 2; i++) {
			if (parts[i][0] && (size_t)length < sizeof line)
				length += snprintf(line + length, sizeof line - (size_t)length, ", %s", parts[i]);
		}
		write_line(NULL, NULL, "", line, false);
	} else if (bar_drawn) {
		write_out(&(struct buffer){.data = (char[]){CLEAR_LINE}, .size = strlen(CLEAR_LINE)});
		bar_drawn = false;
	}
	pthread_mutex_unlock(&lock);
}

double clock_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void clock_pause(double seconds)
{
	struct timespec time = {.tv_sec = (time_t)seconds};
	time.tv_nsec = (long)(1e9 * (seconds - (double)time.tv_sec));
	nanosleep(&time, NULL);
}

const char *format_duration(char out[FORMAT_BYTES], double seconds)
{
	if (!(seconds >= 0 && seconds < 1e12)) {
		snprintf(out, FORMAT_BYTES, "?");
	} else if (seconds < 0.9995) {
		snprintf(out, FORMAT_BYTES, "%.0f ms", seconds * 1000);
	} else if (seconds < 59.95) {
		snprintf(out, FORMAT_BYTES, "%.1f s", seconds);
	} else {
		long long whole = (long long)(seconds + 0.5), minutes = whole / 60;
		if (whole < 3600)
			snprintf(out, FORMAT_BYTES, "%lld min %lld s", minutes, whole % 60);
		else if (whole < 86400)
			snprintf(out, FORMAT_BYTES, "%lld h %lld min", minutes / 60, minutes % 60);
		else
			snprintf(out, FORMAT_BYTES, "%lld d %lld h", minutes / 1440, minutes / 60 % 24);
	}
	return out;
}

const char *format_size(char out[FORMAT_BYTES], double bytes)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
	if (bytes < 0) {
		snprintf(out, FORMAT_BYTES, "?");
	} else if (bytes < 999.5) {
		snprintf(out, FORMAT_BYTES, "%.0f byte%s", bytes, bytes == 1 ? "" : "s");
	} else {
		int unit = 0;
		double value = bytes / 1000;
		while (value >= 999.5 && unit < 5) {
			value /= 1000;
			unit++;
		}
		snprintf(out, FORMAT_BYTES, "%.*f %s", value < 99.95, value, units[unit]);
	}
	return out;
}

const char *format_count(char out[FORMAT_BYTES], int64_t count)
{
	char digits[24];
	int length = snprintf(digits, sizeof digits, "%lld", (long long)count), used = 0;
	for (int i = 0; i < length; i++) {
		out[used++] = digits[i];
		int after = length - 1 - i;
		if (after > 0 && after % 3 == 0 && digits[i] != '-')
			out[used++] = ',';
	}
	out[used] = '\0';
	return out;
}

const char *format_counted(char out[FORMAT_BYTES], int64_t count, const char *one, const char *many)
{
	char number[FORMAT_BYTES];
	snprintf(out, FORMAT_BYTES, "%.26s %.36s", format_count(number, count), count == 1 ? one : many);
	return out;
}
