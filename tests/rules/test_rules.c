/* The rules that keep the source in order, read from the source itself: which folder may include which, where
 * vendor headers may stand, which functions are not used, whether each header compiles alone, whether
 * documents name what is there. Runs from the repository's root. */
#include "test.h"
#include <ctype.h>
#include <glob.h>

/* In the order of the data flow: a folder includes only itself and those before it. */
static const char *const folders[] = {"base", "formats", "text",  "data",   "backend", "model", "weights",
				      "comm", "tasks",   "infer", "library", "serve", "report", "train", "run", "cmd"};
enum { FOLDERS = sizeof folders / sizeof *folders };

/* A vendor's header, by the beginning of its name, and the only place for it. */
static const struct {
	const char *header, *place;
} vendors[] = {
	{"dnnl", "src/backend/cpu/"},
	{"oneapi/", "src/backend/cpu/"},
	{"omp.h", "src/backend/cpu/"},
	{"immintrin.h", "src/backend/"},
	{"cuda", "src/backend/cuda/"},
	{"cublas", "src/backend/cuda/"},
	{"cudnn", "src/backend/cuda/"},
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

/* What is not written, and why. "stdout" and the like are for src/cmd. */
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
};

static int problems;

/* All source files, tests left out. */
static void for_each_source(void (*check)(const char *path, char *text))
{
	glob_t files;
	assert_int_equal(glob("src/*.[ch]", 0, NULL, &files), GLOB_NOMATCH); /* every file is in a folder */
	assert_int_equal(
		glob("{src/*/*.[ch],src/*/*/*.[ch],src/*/*/*/*.[ch],src/*/*/*/*.cu,src/*/*/*/*.cuh}", GLOB_BRACE, NULL, &files),
		0);
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
			if (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
				continue;
			int line = 1;
			for (const char *p = text; p < at; p++)
				line += *p == '\n';
			problem(path, line, words[i].word, words[i].reason);
		}
	}
}

/* BASE_FILE_H for src/base/file.h, so that no two headers shut each other out. */
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
	(void)state;
	for_each_source(check_includes);
}

static void some_functions_are_not_used(void **state)
{
	(void)state;
	for_each_source(check_words);
}

static void headers_are_guarded_by_their_name(void **state)
{
	(void)state;
	for_each_source(check_guard);
}

/* The compiler is there, since it built this test. The kernels' own headers need an instruction set, CUDA's are those of
 * the emulation; those of cuDNN and HDF5 are the libraries' own, where they are. */
static void headers_compile_alone(void **state)
{
	(void)state;
	assert_int_equal(
		system("for header in src/*/*.h src/*/*/*.h; do "
		       "case $header in */kernels/*) continue ;; esac; "
		       "folders='-isystem /usr/include/hdf5/serial'; "
		       "vendor=$(grep -o '<cudnn.h>\\|<hdf5.h>' $header); "
		       "[ -z \"$vendor\" ] || "
		       "echo \"#include $vendor\" | ${CC:-gcc} $folders -E -x c - >/dev/null 2>&1 || continue; "
		       "echo \"#include \\\"${header#src/}\\\"\" | ${CC:-gcc} -std=c11 -D_GNU_SOURCE -Isrc -Iinclude "
		       "-Itests/cuda/emulation $folders -Wall -Werror -fsyntax-only -x c - "
		       "|| exit 1; "
		       "done"),
		0);
}

/* Paths in back quotes in the documents exist. */
static void documents_name_what_is_there(void **state)
{
	(void)state;
	static const char *const roots[] = {"src/", "tests/", "dev/", "docs/", "demo/", "bench/"};
	glob_t files;
	int found = 0;
	assert_int_equal(glob("{README.md,docs/*.md}", GLOB_BRACE, NULL, &files), 0);
	problems = 0;
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct buffer text = {0};
		assert_ok(file_read(files.gl_pathv[i], 4 << 20, &text));
		for (const char *p = buffer_string(&text); (p = strchr(p, '`')); p++) {
			char path[256];
			size_t length = strcspn(p + 1, "`\n ");
			bool named = false;
			for (size_t r = 0; r < sizeof roots / sizeof *roots; r++)
				named |= !strncmp(p + 1, roots[r], strlen(roots[r]));
			if (!named || p[1 + length] != '`' || length >= sizeof path || strcspn(p + 1, "*<{[") < length)
				continue;
			snprintf(path, sizeof path, "%.*s", (int)length, p + 1);
			found++;
			if (!file_exists(path))
				problem(files.gl_pathv[i], 0, path, "is not there");
		}
		buffer_release(&text);
	}
	globfree(&files);
	assert_true(found > 10);
	assert_int_equal(problems, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folders_depend_on_those_above),     cmocka_unit_test(some_functions_are_not_used),
		cmocka_unit_test(headers_are_guarded_by_their_name), cmocka_unit_test(headers_compile_alone),
		cmocka_unit_test(documents_name_what_is_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
