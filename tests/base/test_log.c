/* Log lines and the progress bar, on terminals of several widths and elsewhere. */
#include "test.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/buffer.h"
#include "base/log.h"

/* Runs `show` in a child whose standard error is a terminal with `columns` columns (0: a pipe), and returns everything it
 * wrote. */
static void capture(void (*show)(void), int columns, struct buffer *out)
{
	int ours, theirs, pipes[2];
	buffer_clear(out);
	if (columns) {
		struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = 25};
		assert_int_equal(openpty(&ours, &theirs, NULL, NULL, &size), 0);
	} else {
		assert_int_equal(pipe(pipes), 0);
		ours = pipes[0];
		theirs = pipes[1];
	}
	pid_t child = fork();
	if (child == 0) {
		dup2(theirs, STDERR_FILENO);
		close(ours);
		close(theirs);
		show();
		_exit(0);
	}
	/* This side keeps the other end open: a terminal that nobody has open may drop data that has not been read yet. */
	char piece[4096];
	int result;
	bool ended = false;
	for (;;) {
		struct pollfd ready = {.fd = ours, .events = POLLIN};
		bool more = poll(&ready, 1, ended ? 0 : 10) > 0;
		ssize_t got = more ? read(ours, piece, sizeof piece) : 0;
		if (got > 0)
			buffer_append(out, piece, (size_t)got);
		else if (ended)
			break;
		else
			ended = waitpid(child, &result, WNOHANG) == child;
	}
	close(theirs);
	close(ours);
	assert_int_equal(result, 0);
	buffer_append(out, "", 0);
}

static void use_terminal(const char *term, const char *no_color, const char *locale)
{
	unsetenv("LC_ALL");
	unsetenv("LC_CTYPE");
	setenv("TERM", term, 1);
	if (no_color)
		setenv("NO_COLOR", no_color, 1);
	else
		unsetenv("NO_COLOR");
	if (locale)
		setenv("LANG", locale, 1);
	else
		unsetenv("LANG");
}

static void show_lines(void)
{
	log_note("a note %d", 1);
	log_detail("a detail");
	log_warning("a warning");
	log_level = LOG_VERBOSE;
	log_detail("shown detail");
	log_level = LOG_QUIET;
	log_note("hidden note");
	log_warning("shown warning");
}

static void levels(void **state)
{
	struct buffer out = {0};
	use_terminal("xterm", NULL, NULL);
	capture(show_lines, 0, &out);
	assert_string_equal(out.data, "a note 1\nwarning: a warning\nshown detail\nwarning: shown warning\n");
	capture(show_lines, 80, &out);
	assert_non_null(strstr(out.data, "\033[33mwarning: \033[0ma warning\r\n"));
	static const char *const plain[][2] = {{"dumb", NULL}, {"xterm", "1"}};
	for (int i = 0; i < 2; i++) {
		use_terminal(plain[i][0], plain[i][1], NULL);
		capture(show_lines, 80, &out);
		assert_null(strchr(out.data, '\033'));
	}
	buffer_release(&out);
}

static void show_hostile(void)
{
	struct progress progress;
	log_note("read '%s'", "a\033]0;title\a\xC2\x9B\r.txt");
	log_note("read '%s'", "b\nwarning: forged");
	log_detail("read '%s'", "b\nwarning: forged");
	log_warning("'%s': \xE2\x80\xAEodd\nsecond line", "\xff");
	progress_start(&progress, "reading", 0, 10, "files");
	clock_pause(0.11);
	progress_update(&progress, 5, "%s", "b\033[2J");
	progress_finish(&progress);
}

static void show_queries(void)
{
	struct progress progress;
	for (int64_t count = 1; count <= 2; count++) {
		progress_start(&progress, "searching", 0, count, "queries");
		progress.started -= 10;
		progress_update(&progress, count, NULL);
		progress_finish(&progress);
	}
}

static void one_is_singular(void **state)
{
	struct buffer out = {0};
	capture(show_queries, 0, &out);
	assert_non_null(strstr(buffer_string(&out), "searching: 1 query in 10.0 s, 10.0 s/query\n"));
	assert_non_null(strstr(buffer_string(&out), "searching: 2 queries in 10.0 s, 5.0 s/query\n"));
	buffer_release(&out);
}

static void show_beside_results(int to)
{
	struct progress progress;
	dup2(to, STDOUT_FILENO);
	progress_beside_results();
	progress_start(&progress, "predicting", 0, 2, "texts");
	log_note("an answer");
	progress_finish(&progress);
}

static void show_on_terminal(void)
{
	show_beside_results(STDERR_FILENO);
}

static void show_through_pipe(void)
{
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	show_beside_results(pipes[1]);
}

static void show_to_null(void)
{
	show_beside_results(open("/dev/null", O_WRONLY));
}

/* No bar gets between the answers on a terminal, or disturbs a program that shows them. */
static void results_on_a_terminal(void **state)
{
	struct buffer out = {0};
	use_terminal("xterm", NULL, NULL);
	capture(show_on_terminal, 80, &out);
	assert_string_equal(buffer_string(&out), "an answer\r\n");
	capture(show_through_pipe, 80, &out);
	assert_string_equal(buffer_string(&out), "an answer\r\n");
	capture(show_to_null, 80, &out);
	assert_non_null(strstr(buffer_string(&out), "predicting"));
	buffer_release(&out);
}

static void show_long(void)
{
	log_note("twelve lines of a long text are \xC3\xA9t\xC3\xA9, not more");
	log_warning("give `--a_command that is copied as it is` and wait");
	log_note("a table\n  with rows that are wide\n");
}

/* Lines break between words, and commands stay whole. */
static void long_lines(void **state)
{
	struct buffer out = {0};
	use_terminal("xterm", "1", NULL);
	capture(show_long, 0, &out);
	assert_string_equal(out.data, "twelve lines of a long text are \xC3\xA9t\xC3\xA9, not more\n"
				      "warning: give `--a_command that is copied as it is` and wait\n"
				      "a table\n  with rows that are wide\n");
	capture(show_long, 20, &out);
	assert_string_equal(out.data, "twelve lines of a\r\nlong text are \xC3\xA9t\xC3\xA9,\r\nnot more\r\n"
				      "warning: give\r\n`--a_command that is copied as it is`\r\nand wait\r\n"
				      "a table\r\n  with rows that are\r\nwide\r\n");
	buffer_release(&out);
}

/* Characters in a file's name that would control the terminal are escaped. */
static void names_cannot_steer_the_terminal(void **state)
{
	struct buffer out = {0};
	use_terminal("xterm", "1", "C.UTF-8");
	for (int columns = 0; columns <= 120; columns += 120) {
		capture(show_hostile, columns, &out);
		const char *said = buffer_string(&out);
		assert_non_null(strstr(said, "read 'a\\x1b]0;title\\x07\\u009b\\x0d.txt'"));
		assert_non_null(strstr(said, "warning: '\\xff': \\u202eodd"));
		assert_non_null(strstr(said, "read 'b\\x0awarning: forged'"));
		assert_null(strstr(said, "\nwarning: forged"));
		assert_null(strstr(said, "\033]"));
		assert_null(strstr(said, "\033[2J"));
		assert_null(strstr(said, "\a"));
		if (columns)
			assert_non_null(strstr(said, "b\\x1b[2J"));
	}
	buffer_release(&out);
}

static void show_progress(void)
{
	struct progress progress;
	progress_start(&progress, "training", 500, 1000, "steps");
	progress.started -= 10;
	for (int i = 500; i <= 1000; i++) {
		progress_update(&progress, i, "loss %.3f", 5.0 - i / 500.0);
		if (i % 50 == 0)
			progress.drawn = 0; /* as if it were time to draw */
		if (i % 100 == 0) {
			log_note("note at %d", i);
		}
	}
	progress_finish(&progress);
}

/* The width in columns of the widest line of `text`; escapes do not count. */
static int widest_line(const char *text)
{
	int widest = 0, width = 0;
	for (const char *p = text; *p; p++) {
		if (*p == '\033') {
			p += strcspn(p, "mK");
		} else if (*p == '\r' || *p == '\n') {
			width = 0;
		} else if (((unsigned char)*p & 0xC0) != 0x80) {
			width++;
			widest = width > widest ? width : widest;
		}
	}
	return widest;
}

static void bar_on_a_terminal(void **state)
{
	struct buffer out = {0};
	use_terminal("xterm-256color", NULL, "en_GB.UTF-8");
	static const int widths[] = {5, 12, 20, 30, 40, 60, 80, 100, 120, 200};
	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
		capture(show_progress, widths[i], &out);
		char *end = strstr(out.data, "\033[Ktraining:"); /* the steps before were those of another process */
		assert_non_null(end);
		*end = '\0'; /* the last line goes into the scroll-back, where the terminal may wrap it */
		assert_true(widest_line(strstr(out.data, "\033[K")) <= widths[i] || widths[i] < 12);
		if (widths[i] >= 60)
			assert_true(strstr(out.data, "█") && strstr(out.data, "training") && strstr(out.data, "% "));
		if (widths[i] >= 80)
			assert_true(strstr(out.data, "loss 3.898") && strstr(out.data, "ETA ")); /* the update after step 550 */
		if (widths[i] >= 120)
			assert_true(strstr(out.data, "1,000/1,000 steps") && strstr(out.data, "steps/s"));
		/* A line that replaces a progress line wipes it first. */
		assert_non_null(strstr(out.data, widths[i] < 12 ? "\r\033[Knote\r\n" : "\r\033[Knote at 600\r\n"));
	}
	use_terminal("xterm", NULL, "de_DE.ISO-8859-1");
	capture(show_progress, 80, &out);
	assert_non_null(strstr(out.data, "#####"));
	assert_null(strstr(out.data, "█"));
	use_terminal("xterm", "1", "en_GB.UTF-8");
	capture(show_progress, 80, &out);
	assert_null(strstr(out.data, "\033[3"));
	buffer_release(&out);
}

/* A run's text on terminals of common widths: loss, speed and time left stay, the bar narrows. */
static void show_training(void)
{
	struct progress progress;
	progress_start(&progress, "training", 0, 100000, "steps");
	progress.started -= 3600;
	for (int i = 1; i <= 4000; i++) {
		if (i == 4000)
			progress.drawn = 0;
		progress_update(&progress, i, "loss 4.921  50,356 tokens/s  MLM 21.5 %%  NSP 55.9 %%  17 %% of peak");
	}
	progress_finish(&progress);
}

static void loss_and_speed_stay(void **state)
{
	struct buffer out = {0};
	use_terminal("xterm", "1", "en_GB.UTF-8");
	static const struct {
		int columns;
		bool bar, accuracy, all;
	} rows[] = {{64, false, false, false}, {80, true, true, false}, {100, true, true, false}, {140, true, true, true}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		capture(show_training, rows[i].columns, &out);
		char *end = strstr(out.data, "training: 4,000 steps in ");
		assert_non_null(end);
		*end = '\0';
		const char *bar = NULL; /* the last one */
		for (const char *next = out.data; (next = strstr(next, "\r\033[K")) && strstr(next, "training"); next += 4)
			bar = next;
		assert_non_null(bar);
		assert_true(widest_line(bar) < rows[i].columns);
		assert_true(strstr(bar, "  4 %  loss 4.921  50,356 tokens/s"));
		assert_non_null(strstr(bar, "ETA 1 d 0 h"));
		assert_true(!strstr(bar, "▕") == !rows[i].bar);
		assert_true(!strstr(bar, "MLM 21.5 %") == !rows[i].accuracy);
		assert_true(!strstr(bar, "17 % of peak  ETA") == !rows[i].all);
	}
	buffer_release(&out);
}

static void show_slow_progress(void)
{
	struct progress progress;
	progress_start(&progress, "training", 0, 1000, "steps");
	progress.started -= 10;
	for (int i = 1; i <= 1000; i++) {
		if (i == 250)
			progress.drawn -= 100; /* as if a minute had passed */
		progress_update(&progress, i, "loss %d", i);
	}
	progress_finish(&progress);
}

static void lines_elsewhere(void **state)
{
	struct buffer out = {0};
	use_terminal("xterm", NULL, "en_GB.UTF-8");
	capture(show_slow_progress, 0, &out);
	assert_null(strchr(out.data, '\033'));
	assert_null(strchr(out.data, '\r'));
	int lines = 0;
	for (const char *p = out.data; (p = strchr(p, '\n')); p++)
		lines++;
	assert_int_equal(lines, 2);
	assert_memory_equal(out.data, "training: 250/1,000 steps (25 %), ", 34);
	assert_non_null(strstr(out.data, ", loss 250\n"));
	assert_non_null(strstr(out.data, "\ntraining: 1,000 steps in "));
	use_terminal("dumb", NULL, NULL);
	capture(show_slow_progress, 80, &out);
	assert_null(strchr(out.data, '\033'));
	buffer_release(&out);
}

static void show_nested(void)
{
	struct progress outer, inner;
	progress_start(&outer, "training", 0, 0, "steps");
	progress_update(&outer, 7, "%s", "");
	progress_start(&inner, "evaluating", 0, 5000000, "bytes");
	progress_update(&inner, 2500000, "%s", "");
	outer.drawn = 0;
	progress_update(&outer, 8, "%s", "hidden");
	progress_finish(&inner);
	outer.drawn = 0;
	progress_update(&outer, 9, "%s", "seen");
	progress_finish(&outer);
	log_level = LOG_QUIET;
	show_progress();
}

static void progress_within_progress(void **state)
{
	struct buffer out = {0};
	use_terminal("xterm", NULL, "en_GB.UTF-8");
	capture(show_nested, 100, &out);
	assert_non_null(strstr(out.data, "evaluating: 2.5 MB in "));
	assert_null(strstr(out.data, "hidden"));
	char *inner_end = strstr(out.data, "evaluating: ");
	assert_non_null(strstr(inner_end, "seen"));
	assert_non_null(strstr(inner_end, "training: 9 steps in "));
	assert_null(strstr(out.data, "note at")); /* quiet means quiet */
	buffer_release(&out);
}

static void *chatter(void *name)
{
	for (int i = 0; i < 200; i++)
		log_note("%s %d 0123456789012345678901234567890123456789", (const char *)name, i);
	return NULL;
}

static void show_threads(void)
{
	pthread_t threads[3];
	static char names[3][2] = {"a", "b", "c"};
	struct progress progress;
	progress_start(&progress, "work", 0, 1000, "steps");
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, chatter, names[i]);
	for (int i = 0; i < 1000; i++)
		progress_update(&progress, i, "at %d", i);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	progress_finish(&progress);
}

/* Lines from several threads are not interleaved. */
static void threads_do_not_mix(void **state)
{
	struct buffer out = {0};
	use_terminal("xterm", NULL, "en_GB.UTF-8");
	capture(show_threads, 0, &out);
	int lines = 0;
	for (char *line = out.data, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
		*end = '\0';
		assert_true(strstr(line, " 0123456789012345678901234567890123456789") ? strlen(line) < 50
										      : strstr(line, "work: ") == line);
	}
	assert_int_equal(lines, 601);
	buffer_release(&out);
}

static void show_to_file(void)
{
	use_terminal("xterm", NULL, "en_GB.UTF-8");
	log_to_file(test_path("log"));
	log_warning("kept");
	show_progress();
	log_to_file(NULL);
	log_note("not kept");
}

static void lines_go_to_a_file_without_colors(void **state)
{
	struct buffer out = {0}, text = {0};
	capture(show_to_file, 80, &out);
	assert_ok(file_read(test_path("log"), 1 << 20, &text));
	assert_memory_equal(text.data, "warning: kept\nnote at 500\n", 26);
	assert_null(strchr(text.data, '\033'));
	assert_null(strstr(text.data, "not kept"));
	buffer_release(&out);
	buffer_release(&text);
}

static void show_closed(void)
{
	close(STDERR_FILENO);
	show_lines();
	show_progress();
}

static void closed_standard_error_is_survived(void **state)
{
	struct buffer out = {0};
	capture(show_closed, 80, &out);
	assert_int_equal(out.size, 0);
	buffer_release(&out);
}

static void numbers_for_people(void **state)
{
	char out[FORMAT_BYTES];
	static const struct {
		double seconds;
		const char *text;
	} durations[] = {{0, "0 ms"},
			 {0.0123, "12 ms"},
			 {0.9996, "1.0 s"},
			 {4.2, "4.2 s"},
			 {59.94, "59.9 s"},
			 {59.96, "1 min 0 s"},
			 {185, "3 min 5 s"},
			 {3599.6, "1 h 0 min"},
			 {11520, "3 h 12 min"},
			 {86400 * 3 + 7200, "3 d 2 h"},
			 {-1, "?"},
			 {1e300, "?"}};
	for (size_t i = 0; i < sizeof durations / sizeof *durations; i++)
		assert_string_equal(format_duration(out, durations[i].seconds), durations[i].text);
	static const struct {
		double bytes;
		const char *text;
	} sizes[] = {{0, "0 bytes"},    {1, "1 byte"},      {999, "999 bytes"}, {1000, "1.0 kB"},  {12345678, "12.3 MB"},
		     {99950, "100 kB"}, {999499, "999 kB"}, {999500, "1.0 MB"}, {1.4e9, "1.4 GB"}, {1e30, "1000000000000 EB"},
		     {-1, "?"}};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		assert_string_equal(format_size(out, sizes[i].bytes), sizes[i].text);
	assert_string_equal(format_count(out, 0), "0");
	assert_string_equal(format_count(out, 999), "999");
	assert_string_equal(format_count(out, 1000), "1,000");
	assert_string_equal(format_count(out, -1234567), "-1,234,567");
	assert_string_equal(format_count(out, -123), "-123");
	assert_string_equal(format_count(out, INT64_MIN), "-9,223,372,036,854,775,808");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_is_singular),
		cmocka_unit_test(results_on_a_terminal),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(names_cannot_steer_the_terminal),
		cmocka_unit_test(levels),
		cmocka_unit_test(bar_on_a_terminal),
		cmocka_unit_test(loss_and_speed_stay),
		cmocka_unit_test(lines_elsewhere),
		cmocka_unit_test(progress_within_progress),
		cmocka_unit_test(threads_do_not_mix),
		cmocka_unit_test(lines_go_to_a_file_without_colors),
		cmocka_unit_test(closed_standard_error_is_survived),
		cmocka_unit_test(numbers_for_people),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
