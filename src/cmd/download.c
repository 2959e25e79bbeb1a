/* bertc download: corpora, tasks, vocabularies, and checkpoints from their publishers, or files from any address. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "cmd/command.h"
#include "cmd/download_sources.h"
#include "formats/checksum.h"
#include "formats/fetch.h"
#include "formats/hub.h"
#include "formats/unpack.h"

struct download_settings {
	const char *out, *language, *date, *checksum, *mirror;
	struct option_list books;
	bool list, unpack;
	int64_t retries, max_unpacked_files;
	double stall_seconds, pause_seconds, max_unpacked_gb, max_unpacked_ratio;
};

#define ROW(member, role, value) OPTION_ROW(struct download_settings, member, role, value)

/* clang-format off */
static const struct option download_options[] = {
	{ROW(list, ROLE_PLACE, NULL), .fallback = "false", .help = "print the sources known by name, then stop"},
	{ROW(out, ROLE_PLACE, "FOLDER"), .letter = 'o', .fallback = "download",
	 .help = "folder to download into, with a subfolder for each kind"},
	{ROW(language, ROLE_PLACE, "CODE"), .fallback = "en", .help = "language of the Wikipedia, by its code: en, zh, simple"},
	{ROW(date, ROLE_PLACE, "YYYYMMDD"), .fallback = "latest",
	 .help = "date of the Wikipedia dump; only dated dumps never change"},
	{ROW(books, ROLE_PLACE, "N|FILE..."), .help = "for gutenberg: numbers of books, or files that list them"},
	{ROW(checksum, ROLE_PLACE, "SUM"), .help = "md5:, sha1:, or sha256: and the digits, for the one address given"},
	{ROW(unpack, ROLE_PLACE, NULL), .fallback = "true",
	 .help = "unpack zip and tar archives, each into a new folder with the archive's name"},
	{ROW(mirror, ROLE_PLACE, "URL"), .help = "use this server instead of each host: https://host/path becomes URL/path"},
	{.help = "Limits for unpacked archives"},
	{ROW(max_unpacked_gb, ROLE_PLACE, "X"), .fallback = "100", .range = "0..1e9",
	 .help = "size of all its files in gigabytes"},
	{ROW(max_unpacked_files, ROLE_PLACE, "N"), .fallback = "1000000", .range = "1..", .help = "number of files and folders"},
	{ROW(max_unpacked_ratio, ROLE_PLACE, "X"), .fallback = "100", .range = "1..1e9",
	 .help = "unpacked bytes per byte of the archive; text rarely compresses better than 20 to 1"},
	{.help = "Unreliable connections"},
	{ROW(retries, ROLE_PLACE, "N"), .fallback = "6", .range = "0..1000",
	 .help = "give up after this many attempts in a row without progress"},
	{ROW(stall_seconds, ROLE_PLACE, "X"), .fallback = "30", .range = "0.1..3600",
	 .help = "abandon an attempt after this long without data"},
	{ROW(pause_seconds, ROLE_PLACE, "X"), .fallback = "2", .range = "0..3600",
	 .help = "pause before the second attempt; doubles with each further one"},
	{0},
};
/* clang-format on */

static const struct command_text download_text = {
	.name = "download",
	.synopsis = "[options] NAME|OWNER/NAME|URL...",
	.summary = "fetch corpora, tasks, vocabularies and checkpoints",
	.description = "Downloads data sets, vocabularies, and checkpoints by name (`bertc download --list` shows all names; "
		       "the part before a slash stands for the whole group), models from the Hugging Face Hub by their names "
		       "there (OWNER/NAME, or OWNER/NAME@REVISION), or files from any http or https address. "
		       "Interrupted downloads are resumed, failed ones are retried after increasing pauses, and published "
		       "checksums are verified. The paths of the files are printed. An existing file is never overwritten, "
		       "unless it came from the same address and its checksum is now wrong. X.zip is unpacked into the new "
		       "folder X.\n\n"
		       "A model from the Hub is kept in huggingface_hub's cache, where each program finds what the other has "
		       "fetched; the path of its folder is printed. Options that take a model also take hf:OWNER/NAME, which "
		       "downloads it if it is not there. HF_HUB_CACHE, HF_HOME, HF_TOKEN, HF_ENDPOINT (a mirror) and "
		       "HF_HUB_OFFLINE mean what they mean to huggingface_hub.\n\n"
		       "Files that the servers no longer have are skipped and listed at the end, with exit code 5; all "
		       "others are downloaded. Run the same command again to fetch only what is missing.",
	.examples = "bertc download wikipedia --language simple --out data\ta Wikipedia, for bertc extract\n"
		    "bertc download gutenberg --books 1342 2701 --out data\ttwo books\n"
		    "bertc download squad glue/MRPC vocab/bert-base-uncased\ttasks and a vocabulary\n"
		    "bertc download google/uncased_L-12_H-768_A-12\tGoogle's BERT-base, for --init_checkpoint\n"
		    "bertc download sentence-transformers/all-MiniLM-L6-v2\ta model from the Hugging Face Hub\n"
		    "bertc download https://example.org/text.txt.gz --checksum sha256:...\tany address\n",
};

/* One file to fetch. */
struct job {
	char *url, *path, *sums_url;
	char *origin;                  /* `url` before --mirror */
	char checksum[CHECKSUM_BYTES]; /* "" = none */
	double pause_seconds;
};

struct job_list {
	struct job *jobs;
	int64_t count, capacity;
};

static void job_release(struct job *job)
{
	free(job->url);
	free(job->origin);
	free(job->path);
	free(job->sums_url);
}

static void job_list_release(struct job_list *list)
{
	for (int64_t i = 0; i < list->count; i++)
		job_release(&list->jobs[i]);
	free(list->jobs);
	*list = (struct job_list){0};
}

/* Values of {wiki}, {date}, and {book}. */
struct values {
	char wiki[64];
	const char *date, *book;
};

static enum status expand(const char *template, const struct values *values, struct buffer *out)
{
	out->size = 0;
	for (const char *at = template; *at;) {
		const char *value = NULL;
		size_t size = 0;
		if (strncmp(at, "{wiki}", size = 6) == 0 || strncmp(at, "{date}", size) == 0 || strncmp(at, "{book}", size) == 0)
			value = at[1] == 'w' ? values->wiki : at[1] == 'd' ? values->date : values->book;
		if (value) {
			buffer_append(out, value, strlen(value));
			at += size;
		} else {
			buffer_char(out, *at++);
		}
	}
	return buffer_status(out);
}

/* With --mirror, replaces scheme and host with its address. */
static enum status mirrored(const struct download_settings *settings, struct buffer *url)
{
	if (!settings->mirror)
		return OK;
	struct buffer moved = {0};
	const char *host = strstr(buffer_string(url), "://"), *rest = host ? strchr(host + 3, '/') : NULL;
	size_t size = strlen(settings->mirror);
	while (size > 0 && settings->mirror[size - 1] == '/')
		size--;
	buffer_append(&moved, settings->mirror, size);
	if (rest)
		buffer_append(&moved, rest, strlen(rest));
	buffer_release(url);
	*url = moved;
	return buffer_status(url);
}

static enum status copy_text(const char *text, char **out)
{
	*out = strdup(text);
	return *out ? OK : error_set(ERR_RESOURCE, "not enough memory for a list of downloads");
}

/* Two addresses must not become one file. *twice: the same address is on the list already, and is fetched only once. */
static enum status check_name(const struct job_list *list, const struct job *job, bool *twice)
{
	*twice = false;
	for (int64_t i = 0; i < list->count && !*twice; i++) {
		if (strcmp(list->jobs[i].path, job->path) != 0)
			continue;
		*twice = strcmp(list->jobs[i].origin, job->origin) == 0;
		if (*twice)
			continue;
		return error_hinted(
			error_set(ERR_USAGE, "%s and %s would both become '%s'", list->jobs[i].origin, job->origin, job->path),
			"download one of them with another --out");
	}
	return OK;
}

static enum status job_add(struct job_list *list, const struct download_settings *settings, const char *url, const char *file,
			   const char *sums_url, const char *checksum, double pause, const struct values *values)
{
	char path[PATH_BYTES];
	struct buffer text = {0};
	struct job job = {.pause_seconds = pause};
	enum status status = OK;
	TRY(memory_grow(&list->jobs, &list->capacity, list->count + 1, sizeof *list->jobs, "a list of downloads"));
	TRY_GOTO(expand(url, values, &text), done);
	TRY_GOTO(copy_text(buffer_string(&text), &job.origin), done);
	TRY_GOTO(mirrored(settings, &text), done);
	TRY_GOTO(copy_text(buffer_string(&text), &job.url), done);
	TRY_GOTO(expand(file, values, &text), done);
	TRY_GOTO(path_join(path, settings->out, buffer_string(&text)), done);
	TRY_GOTO(copy_text(path, &job.path), done);
	if (sums_url) {
		TRY_GOTO(expand(sums_url, values, &text), done);
		TRY_GOTO(mirrored(settings, &text), done);
		TRY_GOTO(copy_text(buffer_string(&text), &job.sums_url), done);
	}
	if (checksum)
		TRY_GOTO(checksum_parse(checksum, job.checksum), done);
	bool twice;
	TRY_GOTO(check_name(list, &job, &twice), done);
	if (twice)
		goto done;
	list->jobs[list->count++] = job;
	job = (struct job){0};
done:
	job_release(&job);
	buffer_release(&text);
	return status;
}

static bool name_matches(const char *name, const char *wanted)
{
	size_t size = strlen(wanted);
	return strncmp(name, wanted, size) == 0 && (name[size] == 0 || name[size] == '/');
}

/* Adds the books of --books: numbers, or files that list them. */
static enum status add_books(struct job_list *list, const struct download_settings *settings,
			     const struct download_source *source, struct values *values)
{
	if (settings->books.count == 0)
		return error_hinted(error_set(ERR_USAGE, "gutenberg needs --books"),
				    "give the numbers of books: bertc download gutenberg --books 1342 2701");
	struct buffer text = {0};
	enum status status = OK;
	for (int64_t i = 0; status == OK && i < settings->books.count; i++) {
		const char *value = settings->books.values[i];
		bool number = value[0] && strspn(value, "0123456789") == strlen(value);
		if (number) {
			buffer_append(&text, value, strlen(value));
			buffer_char(&text, '\n');
			continue;
		}
		struct buffer file = {0};
		status = file_read(value, (size_t)64 << 20, &file);
		if (status == OK)
			buffer_append(&text, buffer_string(&file), file.size);
		buffer_char(&text, '\n');
		buffer_release(&file);
	}
	if (status == OK)
		status = buffer_status(&text);
	char *rest = NULL;
	for (char *word = status == OK ? strtok_r((char *)text.data, " \t\r\n,", &rest) : NULL; word && status == OK;
	     word = strtok_r(NULL, " \t\r\n,", &rest)) {
		values->book = word;
		if (strlen(word) > 12 || strspn(word, "0123456789") != strlen(word))
			status = error_set(ERR_USAGE, "--books: '%.40s' is not the number of a book", word);
		else
			status = job_add(list, settings, source->url, source->file, NULL, NULL, source->pause_seconds, values);
	}
	buffer_release(&text);
	return status;
}

static enum status check_word(const char *option, const char *value, const char *allowed, size_t longest)
{
	if (*value && strlen(value) <= longest && strspn(value, allowed) == strlen(value))
		return OK;
	return error_set(ERR_USAGE, "--%s '%.40s' does not have the form used in the names of dumps", option, value);
}

/* Adds what one argument stands for to the list, or to `hub`, the models from the Hugging Face Hub. */
static enum status add_argument(struct job_list *list, struct name_list *hub, const struct download_settings *settings,
				const char *argument, struct values *values)
{
	if (strncmp(argument, HUB_PREFIX, strlen(HUB_PREFIX)) == 0)
		return name_list_add(hub, argument + strlen(HUB_PREFIX));
	if (strstr(argument, "://")) {
		if (strncmp(argument, "http://", 7) != 0 && strncmp(argument, "https://", 8) != 0)
			return error_set(ERR_USAGE, "'%.200s': only http and https addresses", argument);
		const char *name = strrchr(argument, '/') + 1;
		char file[256];
		snprintf(file, sizeof file, "%.*s", (int)(strcspn(name, "?#") < 255 ? strcspn(name, "?#") : 255), name);
		if (!file[0] || strcmp(file, ".") == 0 || strcmp(file, "..") == 0 || !strchr(strstr(argument, "://") + 3, '/'))
			return error_set(ERR_USAGE, "'%.200s' names no file", argument);
		return job_add(list, settings, argument, file, NULL, settings->checksum, 0,
			       &(struct values){.date = "{date}", .book = "{book}", .wiki = "{wiki}"});
	}
	bool found = strcmp(argument, "gutenberg") == 0;
	for (const struct download_source *source = download_sources; source->name; source++) {
		if (!name_matches(source->name, argument))
			continue;
		found = true;
		if (strstr(source->url, "{book}"))
			TRY(add_books(list, settings, source, values));
		else
			TRY(job_add(list, settings, source->url, source->file, source->sums_url, source->checksum,
				    source->pause_seconds, values));
	}
	if (found)
		return OK;
	const char *names[128];
	int64_t count = 0;
	for (const struct download_source *source = download_sources; source->name && count < 128; source++)
		names[count++] = source->name;
	const char *nearest = nearest_name(argument, names, count);
	if (!nearest && strchr(argument, '/') && hub_is_name(argument))
		return name_list_add(hub, argument);
	enum status status = error_set(ERR_USAGE, "no source is called '%.100s'", argument);
	if (nearest)
		error_hint("did you mean %s? `bertc download --list` shows all; hf:%.100s is a model on the Hugging Face Hub",
			   nearest, argument);
	else
		error_hint("`bertc download --list` shows all; an address begins with http:// or https://, the name of a model "
			   "on the "
			   "Hugging Face Hub with hf:");
	return status;
}

static void print_list(void)
{
	const struct download_source *previous = NULL;
	for (const struct download_source *source = download_sources; source->name; previous = source++) {
		if (!previous || strcmp(previous->name, source->name) != 0)
			printf("%-36s %s\n", source->name, source->summary ? source->summary : "");
	}
}

static void show_progress(void *context, int64_t done, int64_t total)
{
	struct progress *progress = context;
	progress->total = total > 0 ? total : 0;
	progress_update(progress, done, NULL);
}

/* Finds the checksum of `name` in a list. The list of the latest dump names its files by date: "enwiki-latest-X" appears as
 * "enwiki-20260101-X". */
static bool find_checksum(const char *list, const char *name, const char *wiki, char out[CHECKSUM_BYTES])
{
	char prefix[80];
	if (checksum_in_list(list, name, out))
		return true;
	snprintf(prefix, sizeof prefix, "%s-latest-", wiki);
	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	const char *tail = name + strlen(prefix);
	for (const char *line = list; *line; line += strspn(line, "\r\n")) {
		size_t size = strcspn(line, "\r\n"), wiki_size = strlen(wiki);
		char dated[512], whole[512];
		snprintf(whole, sizeof whole, "%.*s", (int)(size < 511 ? size : 511), line);
		const char *begin = strrchr(whole, ' ');
		line += size;
		if (!begin || strncmp(begin + 1, wiki, wiki_size) != 0)
			continue;
		begin += begin[1] == '*' ? 2 : 1;
		size_t digits = begin[wiki_size] == '-' ? strspn(begin + wiki_size + 1, "0123456789") : 0;
		snprintf(dated, sizeof dated, "%s-%.*s-%s", wiki, (int)digits, begin + wiki_size + 1, tail);
		if (digits > 0 && strcmp(begin, dated) == 0)
			return checksum_in_list(list, dated, out);
	}
	return false;
}

/* Looks up a file's checksum in the publisher's list. */
static enum status look_up_checksum(const struct fetch_settings *fetching, const char *folder, struct job *job, const char *wiki)
{
	char path[PATH_BYTES];
	struct fetch_result result;
	struct buffer list = {0};
	TRY(path_join(path, folder, "checksums.tmp"));
	(void)remove(path);
	TRY(fetch(fetching, &(struct fetch_request){.url = job->sums_url, .path = path}, &result));
	if (result.outcome != FETCH_DONE) {
		log_warning("no checksum for %s: %s", job->path, result.reason);
		return OK;
	}
	enum status status = file_read(path, (size_t)16 << 20, &list);
	(void)remove(path);
	const char *name = strrchr(job->path, '/') + 1;
	if (status == OK && !find_checksum(buffer_string(&list), name, wiki, job->checksum))
		log_warning("%s has no line for %s", job->sums_url, name);
	buffer_release(&list);
	return status;
}

static struct fetch_request request_of(const struct job *job)
{
	return (struct fetch_request){
		.url = job->url,
		.origin = job->origin,
		.path = job->path,
		.checksum = job->checksum[0] ? job->checksum : NULL,
	};
}

/* Checks for obstacles that can be detected before the first byte is fetched. */
static enum status check_job(const struct download_settings *settings, const struct job *job)
{
	char folder[PATH_BYTES];
	if (!job->sums_url) {
		struct fetch_request request = request_of(job);
		TRY(fetch_check(&request));
	}
	if (!settings->unpack || !unpack_is_archive(job->path) || file_exists(job->path))
		return OK;
	unpack_folder(job->path, folder);
	if (!file_exists(folder))
		return OK;
	return error_hinted(error_set(ERR_STATE, "'%s' would be unpacked into '%s', which exists already", job->origin, folder),
			    "move it away, or give another --out or --no_unpack");
}

/* An archive that was already there has been unpacked if its folder exists. */
static enum status unpack_job(const struct download_settings *settings, const struct job *job, bool fetched)
{
	const struct unpack_limits limits = {
		.bytes = (int64_t)(1e9 * settings->max_unpacked_gb),
		.files = settings->max_unpacked_files,
		.ratio = settings->max_unpacked_ratio,
	};
	char folder[PATH_BYTES];
	if (!settings->unpack || !unpack_is_archive(job->path))
		return OK;
	unpack_folder(job->path, folder);
	if (!fetched && file_exists(folder))
		return OK;
	TRY(unpack(job->path, folder, &limits));
	log_note("%s: unpacked in %s", job->path, folder);
	return OK;
}

static struct fetch_settings fetch_settings_of(const struct download_settings *settings)
{
	return (struct fetch_settings){
		.stall_seconds = settings->stall_seconds,
		.pause_seconds = settings->pause_seconds,
		.retries = (int)settings->retries,
	};
}

static enum status run_job(const struct download_settings *settings, struct job *job, const char *wiki, bool *missing)
{
	struct fetch_settings fetching = fetch_settings_of(settings);
	char folder[PATH_BYTES], size[FORMAT_BYTES], before[FORMAT_BYTES], had[64] = "";
	struct progress progress;
	struct fetch_result result;
	path_folder(folder, job->path);
	const char *name = path_name(job->path);
	TRY(folder_make(folder));
	if (job->sums_url)
		TRY(look_up_checksum(&fetching, folder, job, wiki));
	progress_start(&progress, name, 0, 0, "bytes");
	struct fetch_request request = request_of(job);
	request.progress = show_progress;
	request.context = &progress;
	enum status status = fetch(&fetching, &request, &result);
	progress_finish(&progress);
	TRY(status);
	*missing = result.outcome == FETCH_GONE || result.outcome == FETCH_FAILED;
	if (*missing) {
		log_warning("%s: %s", job->url, result.reason);
		return OK;
	}
	if (result.outcome == FETCH_PRESENT)
		snprintf(had, sizeof had, "was there, ");
	else if (result.resumed_from > 0)
		snprintf(had, sizeof had, "%s of it from before, ", format_size(before, (double)result.resumed_from));
	log_note("%s: %s%s, %s", job->path, had, format_size(size, (double)result.bytes),
		 job->checksum[0] ? "checksum right" : "no checksum published");
	TRY(unpack_job(settings, job, result.outcome == FETCH_DONE));
	printf("%s\n", job->path);
	return OK;
}

static enum status fetch_models(const struct download_settings *settings, const struct name_list *names)
{
	struct fetch_settings fetching = fetch_settings_of(settings);
	char path[PATH_BYTES];
	for (int64_t i = 0; i < names->count; i++) {
		TRY(hub_fetch(names->names[i], true, &fetching, path));
		printf("%s\n", path);
	}
	return OK;
}

/* Options that the Hub's cache does not obey must not be given for nothing. */
static enum status check_hub_options(const struct options *options, const struct job_list *others)
{
	static const struct {
		const char *option, *instead;
	} rows[] = {{"out", "HF_HUB_CACHE names the folder"}, {"mirror", "HF_ENDPOINT names a mirror of the Hub"}};
	for (size_t i = 0; others->count == 0 && i < sizeof rows / sizeof *rows; i++) {
		if (options_given(options, rows[i].option))
			return error_hinted(error_set(ERR_USAGE, "--%s: models from the Hub are kept in huggingface_hub's cache",
						      rows[i].option),
					    "%s", rows[i].instead);
	}
	return OK;
}

static enum status check(struct options *options)
{
	const struct download_settings *settings = options->settings;
	enum status status = OK;
	if (settings->list)
		return OK;
	if (options->positional.count == 0) {
		status = error_set(ERR_USAGE, "nothing to download");
		error_hint("give a name or an address; `bertc download --list` shows the names");
	}
	TRY(options_blame(options, status));
	TRY(options_blame(options, check_word("language", settings->language, "abcdefghijklmnopqrstuvwxyz-_", 40)));
	TRY(options_blame(options, check_word("date", settings->date, "abcdefghijklmnopqrstuvwxyz0123456789", 40)));
	bool one = options->positional.count == 1 && strstr(options->positional.values[0], "://");
	if (settings->checksum && !one)
		return options_blame(options, error_set(ERR_USAGE, "--checksum belongs to one address"));
	return OK;
}

static enum status run(struct options *options)
{
	const struct download_settings *settings = options->settings;
	struct values values = {.date = settings->date, .book = ""};
	struct job_list list = {0};
	struct name_list missing = {0}, hub = {0};
	enum status status;
	int lock = -1;

	if (settings->list) {
		print_list();
		return OK;
	}
	snprintf(values.wiki, sizeof values.wiki, "%swiki", settings->language);
	for (char *c = values.wiki; *c; c++)
		*c = *c == '-' ? '_' : *c;
	for (int64_t i = 0; i < options->positional.count; i++)
		TRY_GOTO(add_argument(&list, &hub, settings, options->positional.values[i], &values), done);
	if (hub.count > 0 && hub_is_name(hub.names[0])) /* another is refused where it is fetched */
		TRY_GOTO(check_hub_options(options, &list), done);
	stop_install();
	TRY_GOTO(fetch_models(settings, &hub), done);
	if (list.count == 0)
		goto done;
	TRY_GOTO(folder_make(settings->out), done);
	TRY_GOTO(folder_lock(settings->out, &lock), done);
	for (int64_t i = 0; i < list.count; i++)
		TRY_GOTO(check_job(settings, &list.jobs[i]), done);
	for (int64_t i = 0; i < list.count; i++) {
		bool left_out = false;
		TRY_GOTO(run_job(settings, &list.jobs[i], values.wiki, &left_out), done);
		if (left_out)
			TRY_GOTO(name_list_add(&missing, list.jobs[i].url), done);
		double until = clock_seconds() + (i + 1 < list.count ? list.jobs[i].pause_seconds : 0);
		while (clock_seconds() < until && !stop_requested())
			clock_pause(0.02);
	}
	if (missing.count > 0) {
		status = error_set(ERR_RESOURCE, "%" PRId64 " of %" PRId64 " files could not be downloaded: %s%s", missing.count,
				   list.count, missing.names[0], missing.count > 1 ? ", ..." : "");
		error_hint("the lines above say why; run the command again to try only these");
	}
done:
	if (lock >= 0)
		folder_unlock(lock);
	name_list_release(&missing);
	name_list_release(&hub);
	job_list_release(&list);
	return status;
}

const struct command command_download = {
	.text = &download_text,
	.options = download_options,
	.settings_bytes = sizeof(struct download_settings),
	.check = check,
	.run = run,
	.takes_arguments = true,
};
