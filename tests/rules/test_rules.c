/* The rules that keep the source in order, checked against the source itself: which folder may include which, where vendor
 * headers may be used, which functions must not be used, whether each header compiles alone, whether documents name files
 * that exist, how files begin, how long they, functions and lines may be. Runs from the repository's root. */
#include "test.h"
#include <ctype.h>
#include <glob.h>

/* In the order of the data flow: a folder includes only itself and those before it. */
static const char *const folders[] = {"base",  "formats", "text",    "data",  "backend", "model", "weights", "comm",
				      "tasks", "infer",   "library", "serve", "report",  "train", "run",     "cmd"};
enum { FOLDERS = sizeof folders / sizeof *folders };

/* Rooms whose inside is closed: what others need of them is declared beside the room. */
static const char *const rooms[] = {"tasks/squad/", "tasks/tagging/"};

/* The beginning of a vendor header's name, and the only place where it may be used. */
static const struct {
	const char *header, *place;
} vendors[] = {
	{"dnnl", "src/backend/cpu/"},
	{"oneapi/", "src/backend/cpu/"},
	{"omp.h", "src/backend/cpu/"},
	{"immintrin.h", "src/backend/cpu/kernels/"},
	{"arm_neon.h", "src/backend/cpu/kernels/"},
	{"cuda", "src/backend/cuda/"},
	{"cublas", "src/backend/cuda/"},
	{"nccl", "src/comm/"},
	{"mpi.h", "src/comm/"},
	{"utf8proc", "src/text/"},
	{"xxhash", "src/base/"},
	{"zlib", "src/formats/"},
	{"bzlib", "src/formats/"},
	{"zstd", "src/formats/"},
	{"lzma", "src/formats/"},
	{"expat", "src/formats/"},
	{"curl/", "src/formats/"},
	{"nettle/", "src/formats/"},
	{"archive", "src/formats/"},
	{"microhttpd", "src/serve/"},
	{"hdf5", "src/formats/"},
	{"H5", "src/formats/"},
	{"cmocka", "tests/"},
	{"assert.h", "nowhere: BUG_IF stays in release builds"},
};

/* What must not be used, and why. "stdout" and the like are allowed in src/cmd only. */
static const struct {
	const char *word, *allowed, *reason;
} words[] = {
	{"strcpy(", "", "it does not know the size"},
	{"strcat(", "", "it does not know the size"},
	{"sprintf(", "", "it does not know the size"},
	{"strtok(", "", "it has hidden state"},
	{"gets(", "", "it does not know the size"},
	{"atoi(", "", "it takes anything for 0"},
	{"atof(", "", "it takes anything for 0, and follows the locale"},
	{"alloca(", "", "it overflows the stack"},
	{"rand(", "", "randomness comes from base/rng.h"},
	{"drand48(", "", "randomness comes from base/rng.h"},
	{"setlocale(", "", "numbers are written with '.'"},
	{"exit(", "src/cmd/", "errors are values"},
	{"printf(", "src/cmd/", "results are printed by commands"},
	{"puts(", "src/cmd/", "results are printed by commands"},
	{"stdout", "src/cmd/", "results are printed by commands"},
	{"\"roberta\"", "src/model/", "other folders ask the form's fields (model/forms.h), not which form it is"},
	{"\"electra\"", "src/model/", "other folders ask the form's fields (model/forms.h), not which form it is"},
	{"return ERR_", "", "error_set() says what failed and returns the status"},
	{"return STOPPED", "", "stop_error() says why and returns the status"},
	{"? STOPPED", "", "stop_check() says why and returns the status"},
	{"= STOPPED;", "", "stop_check() says why and returns the status"},
	{"&task_", "src/tasks/", "other folders ask the row's fields (tasks/task.h), not which task it is"},
};

static int problems;

/* The files of a pattern with braces. */
static void for_each_file(const char *pattern, void (*check)(const char *path, char *text))
{
	glob_t files;
	assert_int_equal(glob(pattern, GLOB_BRACE, NULL, &files), 0);
	assert_true(files.gl_pathc > 30);
	problems = 0;
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct buffer text = {0};
		assert_ok(file_read(files.gl_pathv[i], 4 << 20, &text));
		buffer_append(&text, "", 0);
		check(files.gl_pathv[i], text.data);
		buffer_release(&text);
	}
	globfree(&files);
	assert_int_equal(problems, 0);
}

/* In a folder, or up to three further down. */
#define DEEP "{/*.,/*/*.,/*/*/*.,/*/*/*/*.}"

/* All source files except tests. */
static void for_each_source(void (*check)(const char *path, char *text))
{
	glob_t files;
	assert_int_equal(glob("src/*.[ch]", 0, NULL, &files), GLOB_NOMATCH); /* every file is in a folder */
	for_each_file("src" DEEP "{c,h,cu,cuh}", check);
}

static void problem(const char *path, int line, const char *what, const char *why)
{
	print_error("%s:%d: '%s': %s\n", path, line, what, why);
	problems++;
}

static int folder_rank(const char *path)
{
	for (int i = 0; i < FOLDERS; i++) {
		size_t length = strlen(folders[i]);
		if (!strncmp(path, folders[i], length) && path[length] == '/')
			return i;
	}
	return -1;
}

static void check_includes(const char *path, char *text)
{
	int line = 0, rank = folder_rank(path + strlen("src/"));
	if (rank < 0)
		problem(path, 0, path, "a folder that is not in the table of folders");
	for (char *at = text, *end; at; at = end ? end + 1 : NULL) {
		char name[256];
		line++;
		end = strchr(at, '\n');
		/* The public header lies in include/. */
		if (!strncmp(path, "src/library/", 12) && !strncmp(at, "#include \"bertc.h\"", 18))
			continue;
		if (sscanf(at, " # include \"%255[^\"]\"", name) == 1) {
			int other = folder_rank(name);
			for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
				if (!strncmp(name, rooms[i], strlen(rooms[i])) &&
				    strncmp(path + strlen("src/"), rooms[i], strlen(rooms[i])) != 0)
					problem(path, line, name, "the inside of a closed room");
			if (other < 0)
				problem(path, line, name, "not named from src/: \"folder/file.h\"");
			else if (other > rank)
				problem(path, line, name, "a folder that comes later in the flow");
			else if (!strncmp(name, "data/pretraining/", 17) && !strncmp(path, "src/data/", 9) &&
				 strncmp(path, "src/data/pretraining/", 21))
				problem(path, line, name, "what only pre-training knows, which data itself does without");
			else if (strchr(name, '/') != strrchr(name, '/') && other != rank &&
				 strncmp(name, "data/pretraining/", 17) && strcmp(folders[rank], "cmd") != 0)
				problem(path, line, name, "the inside of another folder");
			continue;
		}
		if (sscanf(at, " # include <%255[^>]>", name) != 1)
			continue;
		for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
			if (!strncmp(name, vendors[i].header, strlen(vendors[i].header)) &&
			    strncmp(path, vendors[i].place, strlen(vendors[i].place)) != 0)
				problem(path, line, name, vendors[i].place);
		}
	}
}

/* Overwrites comments and strings with blanks, so that only code is searched. */
static void blank_comments(char *text)
{
	for (char *p = text; *p; p++) {
		char *begin = p;
		if (p[0] == '/' && p[1] == '*') {
			char *end = strstr(p + 2, "*/");
			p = end ? end + 1 : p + 1;
		} else if (p[0] == '/' && p[1] == '/') {
			p += strcspn(p, "\n") - 1;
		} else if (*p == '"' || *p == '\'') {
			for (p++; *p && *p != *begin; p++)
				p += *p == '\\' && p[1];
		} else {
			continue;
		}
		for (; begin <= p && *begin; begin++)
			*begin = *begin == '\n' ? '\n' : ' ';
	}
}

static void check_words(const char *path, char *text)
{
	if (strstr(text, "TODO") || strstr(text, "FIXME"))
		problem(path, 0, "TODO or FIXME", "what is not done is not in the source");
	blank_comments(text);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (words[i].allowed[0] && !strncmp(path, words[i].allowed, strlen(words[i].allowed)))
			continue;
		for (const char *at = text; (at = strstr(at, words[i].word)); at++) {
			if (at > text && (isalnum((unsigned char)at[-1]) || strchr("_=!", at[-1])))
				continue;
			int line = 1;
			for (const char *p = text; p < at; p++)
				line += *p == '\n';
			problem(path, line, words[i].word, words[i].reason);
		}
	}
}

/* BASE_FILE_H for src/base/file.h, so that no two headers exclude each other. */
static void check_guard(const char *path, char *text)
{
	char guard[256] = "#ifndef ";
	size_t length = strlen(guard), name = strlen(path);
	if (path[name - 1] != 'h')
		return;
	for (const char *p = path + strlen("src/"); *p && length < sizeof guard - 2; p++)
		guard[length++] = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
	guard[length++] = '\n';
	guard[length] = '\0';
	if (!strstr(text, guard))
		problem(path, 1, guard, "the guard of this header");
}

static void folders_depend_on_those_above(void **state)
{
	for_each_source(check_includes);
}

static void some_functions_are_not_used(void **state)
{
	for_each_source(check_words);
}

static void headers_are_guarded_by_their_name(void **state)
{
	for_each_source(check_guard);
}

/* There is a compiler, since it built this test. The kernels' own headers need an instruction set; the CUDA headers are
 * those of the emulation; HDF5's is the library's own, where it is installed. */
static void headers_compile_alone(void **state)
{
	assert_int_equal(system("for header in src/*/*.h src/*/*/*.h; do "
				"case $header in */kernels/*) continue ;; esac; "
				"folders='-isystem /usr/include/hdf5/serial'; "
				"! grep -q '<hdf5.h>' $header || "
				"echo '#include <hdf5.h>' | ${CC:-gcc} $folders -E -x c - >/dev/null 2>&1 || continue; "
				"echo \"#include \\\"${header#src/}\\\"\" | ${CC:-gcc} -std=c11 -D_GNU_SOURCE -Isrc -Iinclude "
				"-Itests/cuda/emulation $folders -Wall -Werror -fsyntax-only -x c - "
				"|| exit 1; "
				"done"),
			 0);
}

/* ---- The form of all code, tests included ---- */

static bool ends_with(const char *name, const char *end)
{
	size_t size = strlen(name), length = strlen(end);
	return size > length && !strcmp(name + size - length, end);
}

static bool is_source_name(const char *name)
{
	return ends_with(name, ".c") || ends_with(name, ".h") || ends_with(name, ".cu") || ends_with(name, ".cuh");
}

/* What no file exceeds today: a longer one is divided, or says here why it cannot be. Tests hold tables, kernels unroll. */
enum { COLUMNS = 130, FILE_LINES = 900, FUNCTION_LINES = 80, TEST_FILE_LINES = 1150, KERNEL_LINES = 110 };

static void check_lengths(const char *path, char *text)
{
	bool ours = !strncmp(path, "src/", 4), kernel = !ends_with(path, ".c") && !ends_with(path, ".h");
	int line = 0, body = 0;
	for (char *at = text, *end; *at; at = end + 1) {
		int column = 0;
		line++;
		end = strchr(at, '\n');
		if (!end) {
			problem(path, line, at, "no newline at the end of the file");
			break;
		}
		for (const char *p = at; p < end; p++)
			column = *p == '\t' ? (column / 8 + 1) * 8 : column + ((*p & 0xc0) != 0x80);
		if (column > COLUMNS)
			problem(path, line, "a line", "longer than 130 columns");
		if (!strncmp(at, "{\n", 2))
			body = line;
		if (!strncmp(at, "}\n", 2) && body && line - body >= (ours && !kernel ? FUNCTION_LINES : KERNEL_LINES))
			problem(path, body, "a function", "too long");
		body = *at == '}' ? 0 : body;
	}
	if (line > (ours ? FILE_LINES : TEST_FILE_LINES))
		problem(path, line, "a file", "too long");
}

#define ALL_CODE "{src,tests,bench,dev,demo,include}" DEEP "{c,h,cu,cuh,cc}"

static void lengths_are_bounded(void **state)
{
	for_each_file(ALL_CODE, check_lengths);
}

/* A comment that opens the file and has a sentence in it. */
static void check_opening(const char *path, char *text)
{
	const char *end = strncmp(text, "/* ", 3) ? NULL : strstr(text, "*/"), *stop = end ? strpbrk(text, ".:") : NULL;
	if (!stop || stop > end)
		problem(path, 1, "the first line", "does not begin a sentence that says what the file is for");
}

static void files_say_what_they_are_for(void **state)
{
	for_each_file(ALL_CODE, check_opening);
}

/* Other releases of clang-format see some lines differently, so that only the one of `make format-check` counts. */
static void code_has_the_format(void **state)
{
	if (system("command -v clang-format-14 >/dev/null") != 0) {
		print_message("no clang-format-14\n");
		skip();
	}
	assert_int_equal(system("MAKEFLAGS= ${MAKE:-make} --no-print-directory format-check"), 0);
}

/* ---- The documents ---- */

/* The files of the source tree, by path; a name without a folder is compared with the last part of each path. */
static struct name_list tree;

static bool is_in_tree(const char *name)
{
	bool bare = !strchr(name, '/');
	for (int64_t i = 0; i < tree.count; i++) {
		const char *last = strrchr(tree.names[i], '/');
		size_t size = strlen(tree.names[i]), length = strlen(name);
		if (bare ? last && !strcmp(last + 1, name)
			 : size > length && tree.names[i][size - length - 1] == '/' &&
				    !strcmp(tree.names[i] + size - length, name))
			return true;
	}
	return false;
}

static void list_tree(void)
{
	char line[512];
	FILE *files = popen("find src tests dev docs demo bench recipes include python -type f 2>/dev/null", "r");
	assert_non_null(files);
	while (fgets(line, sizeof line, files)) {
		line[strcspn(line, "\n")] = 0;
		assert_ok(name_list_add(&tree, line));
	}
	pclose(files);
	assert_true(tree.count > 500);
}

/* A name in back quotes: a path of ours must exist, and so must a source file, however much of its path is given
 * (`loop.c`, `train/loop.c`). Other programs' files, scripts and data are not checked. */
static void check_quoted(const char *page, const char *name)
{
	static const char *const roots[] = {"src/", "tests/", "dev/", "docs/", "demo/", "bench/", "recipes/", "include/"};
	static const char *const others[] = {"mpi.h", "omp.h"};
	bool ours = false;
	for (size_t r = 0; r < sizeof roots / sizeof *roots; r++)
		ours |= !strncmp(name, roots[r], strlen(roots[r]));
	for (size_t o = 0; o < sizeof others / sizeof *others; o++)
		if (!strcmp(name, others[o]))
			return;
	if (ours ? !file_exists(name) : is_source_name(name) && !is_in_tree(name))
		problem(page, 0, name, "is not there");
}

/* The anchor of a heading: lower case, words joined by '-', other characters left out. */
static void anchor_of(const char *heading, size_t size, char out[256])
{
	size_t used = 0;
	for (size_t i = 0; i < size && used < 254; i++) {
		unsigned char c = (unsigned char)heading[i];
		if (isalnum(c) || c == '_' || c == '-' || c >= 0x80)
			out[used++] = (char)tolower(c);
		else if (c == ' ')
			out[used++] = '-';
	}
	out[used] = 0;
}

static bool has_anchor(const char *path, const char *anchor)
{
	struct buffer text = {0};
	bool found = false;
	assert_ok(file_read(path, 4 << 20, &text));
	for (const char *line = buffer_string(&text); line && *line && !found; line = strchr(line, '\n'), line += line != NULL) {
		char heading[256];
		size_t marks = strspn(line, "#");
		if (marks == 0 || line[marks] != ' ')
			continue;
		anchor_of(line + marks + 1, strcspn(line + marks + 1, "\n"), heading);
		found = !strcmp(heading, anchor);
	}
	buffer_release(&text);
	return found;
}

/* A link to another page, or to a heading of one. */
static void check_link(const char *page, const char *link)
{
	char path[600];
	const char *slash = strrchr(page, '/'), *anchor = strchr(link, '#');
	if (strstr(link, "://") || !strncmp(link, "mailto:", 7))
		return;
	size_t size = anchor ? (size_t)(anchor - link) : strlen(link);
	if (size == 0)
		snprintf(path, sizeof path, "%s", page);
	else
		snprintf(path, sizeof path, "%.*s%.*s", slash ? (int)(slash - page + 1) : 0, page, (int)size, link);
	if (!file_exists(path))
		problem(page, 0, link, "leads nowhere");
	else if (anchor && !has_anchor(path, anchor + 1))
		problem(page, 0, link, "names no heading of that page");
}

/* Checks the names in back quotes and the links of a page; returns the number of names. */
static int check_page(const char *page)
{
	struct buffer text = {0};
	char name[256];
	int found = 0;
	assert_ok(file_read(page, 4 << 20, &text));
	for (const char *p = buffer_string(&text); (p = strchr(p, '`')); p++) {
		size_t length = strcspn(p + 1, "`\n ");
		if (p[1 + length] != '`' || length == 0 || length >= sizeof name || strcspn(p + 1, "*<{[") < length)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)length, p + 1);
		check_quoted(page, name);
		found++;
		p += length;
	}
	for (const char *p = buffer_string(&text); (p = strstr(p, "](")); p++) {
		size_t length = strcspn(p + 2, ")\n ");
		if (p[2 + length] != ')' || length == 0 || length >= sizeof name)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)length, p + 2);
		check_link(page, name);
	}
	buffer_release(&text);
	return found;
}

/* Checks files, source files by any part of their path, and links with their headings. */
static void documents_name_what_is_there(void **state)
{
	glob_t pages;
	int found = 0;
	list_tree();
	assert_int_equal(
		glob("{README.md,CONTRIBUTING.md,dev/README.md,docs/*.md,docs/developers/*.md}", GLOB_BRACE, NULL, &pages), 0);
	problems = 0;
	for (size_t i = 0; i < pages.gl_pathc; i++)
		found += check_page(pages.gl_pathv[i]);
	globfree(&pages);
	name_list_release(&tree);
	assert_true(found > 100);
	assert_int_equal(problems, 0);
}

static void all_fuzz_targets_are_listed(void **state)
{
	const char *page = "docs/reliability.md";
	struct buffer text = {0};
	glob_t targets;
	char row[256];
	assert_ok(file_read(page, 4 << 20, &text));
	assert_int_equal(glob("tests/fuzz/*.c", 0, NULL, &targets), 0);
	problems = 0;
	for (size_t i = 0; i < targets.gl_pathc; i++) {
		const char *name = strrchr(targets.gl_pathv[i], '/') + 1;
		snprintf(row, sizeof row, "\n| `%.*s` |", (int)strcspn(name, "."), name);
		if (!strstr(buffer_string(&text), row))
			problem(page, 0, name, "has no row among the fuzz targets");
	}
	globfree(&targets);
	buffer_release(&text);
	assert_int_equal(problems, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folders_depend_on_those_above),
		cmocka_unit_test(some_functions_are_not_used),
		cmocka_unit_test(headers_are_guarded_by_their_name),
		cmocka_unit_test(headers_compile_alone),
		cmocka_unit_test(documents_name_what_is_there),
		cmocka_unit_test(all_fuzz_targets_are_listed),
		cmocka_unit_test(lengths_are_bounded),
		cmocka_unit_test(files_say_what_they_are_for),
		cmocka_unit_test(code_has_the_format),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
