/* Downloads files with libcurl: resumes partial ones, verifies checksums, and records where each came from. */
#include "formats/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "formats/checksum.h"
#include "formats/curl_library.h"

#define REDIRECTS_MAX 10
#define RETRY_AFTER_MAX 600.0 /* seconds; if a server asks for a longer pause, it is asked again after this */
#define VALIDATOR_BYTES 256

/* What is known about the remote file of which PATH.part is a piece; stored next to it as PATH.part.json. */
struct part {
	char path[PATH_BYTES], note_path[PATH_BYTES];
	char validator[VALIDATOR_BYTES]; /* ETag or Last-Modified; "" = none */
	int64_t size, total;             /* bytes present; bytes of the whole file, -1 if unknown */
	bool noted;                      /* the note on disk is up to date */
};

/* One attempt. */
struct transfer {
	const struct fetch_settings *settings;
	const struct fetch_request *request;
	struct part *part;
	const struct curl_library *library;
	CURL *curl;
	int descriptor;
	bool begun;   /* the beginning of the body has been handled */
	bool stored;  /* the body is the file, not an error page */
	bool chunked; /* the body itself marks its end */
	bool stalled, mismatch;
	enum status disk;    /* status of writing */
	double heard, shown; /* times of the last byte and of the last progress() */
	curl_off_t received;
	char etag[VALIDATOR_BYTES], modified[VALIDATOR_BYTES];
	int64_t range_first, range_total; /* from Content-Range; -1 if there is none */
	double retry_after;
};

static enum status part_open(struct part *part, const struct fetch_request *request)
{
	*part = (struct part){.total = -1};
	if (strlen(request->path) > PATH_BYTES - 16)
		return error_set(ERR_USAGE, "'%.200s...': the path is too long", request->path);
	snprintf(part->path, PATH_BYTES, "%s.part", request->path);
	snprintf(part->note_path, PATH_BYTES, "%s.part.json", request->path);
	struct json_document note;
	int64_t size = file_size(part->path);
	if (size <= 0 || !file_exists(part->note_path) || json_read(&note, part->note_path, 65536) != OK)
		return OK;
	const struct json *url = json_member(note.root, "url"), *validator = json_member(note.root, "validator");
	int64_t total = -1;
	if (url && url->kind == JSON_STRING && strcmp(url->text, request->url) == 0 && validator &&
	    validator->kind == JSON_STRING && validator->text_size < VALIDATOR_BYTES &&
	    json_get_integer(note.root, part->note_path, "total", -1, INT64_MAX, &total) == OK) {
		part->size = size;
		part->total = total;
		memcpy(part->validator, validator->text, validator->text_size + 1);
		part->noted = true;
	}
	json_release(&note);
	return OK;
}

static enum status part_note(struct part *part, const char *url)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "url", url);
	json_put_string(&writer, "validator", part->validator);
	json_put_integer(&writer, "total", part->total);
	json_close(&writer);
	enum status status = buffer_status(&text);
	if (status == OK)
		status = file_write(part->note_path, text.data, text.size);
	buffer_release(&text);
	part->noted = status == OK;
	return status;
}

static void part_remove(struct part *part)
{
	unlink(part->path);
	unlink(part->note_path);
	part->size = 0;
	part->total = -1;
	part->validator[0] = 0;
	part->noted = false;
}

/* ---- Where a file came from ---- */

/* What ".NAME.source.json" says about a file. */
struct source_record {
	bool found;    /* there is a record, and the file has the size that it says */
	bool same;     /* its URL is the one requested */
	char url[512]; /* "" = none; a long one is truncated */
};

static const char *origin_of(const struct fetch_request *request)
{
	return request->origin ? request->origin : request->url;
}

static enum status source_path(const char *path, char out[PATH_BYTES])
{
	const char *name = path_name(path);
	if (snprintf(out, PATH_BYTES, "%.*s.%s.source.json", (int)(name - path), path, name) >= PATH_BYTES)
		return error_set(ERR_USAGE, "'%s...': the path is too long", path);
	return OK;
}

static enum status source_write(const struct fetch_request *request)
{
	char path[PATH_BYTES];
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	TRY(source_path(request->path, path));
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "url", origin_of(request));
	json_put_integer(&writer, "bytes", file_size(request->path));
	json_close(&writer);
	enum status status = buffer_status(&text);
	if (status == OK)
		status = file_write(path, text.data, text.size);
	buffer_release(&text);
	return status;
}

/* A record that cannot be read is treated as missing. */
static enum status source_read(const struct fetch_request *request, struct source_record *out)
{
	char path[PATH_BYTES];
	struct json_document record;
	const char *url = NULL;
	int64_t bytes = -1;
	*out = (struct source_record){0};
	TRY(source_path(request->path, path));
	if (!file_exists(path) || json_read(&record, path, 65536) != OK)
		return OK;
	if (json_get_string(record.root, path, "url", &url) == OK && url &&
	    json_get_integer(record.root, path, "bytes", -1, INT64_MAX, &bytes) == OK) {
		out->found = bytes == file_size(request->path);
		out->same = strcmp(url, origin_of(request)) == 0;
		snprintf(out->url, sizeof out->url, "%s", url);
	}
	json_release(&record);
	return OK;
}

/* The error for an existing file that is a different one or of unknown origin. */
static enum status refuse_present(const struct fetch_request *request, const struct source_record *record, const char *checksum)
{
	enum status status;
	if (record->found && !record->same)
		status = error_set(ERR_STATE, "'%s' was downloaded from %s, not from %s", request->path, record->url,
				   origin_of(request));
	else if (record->url[0] && record->same)
		status = error_set(ERR_STATE, "'%s' has changed since it was downloaded from %s", request->path, record->url);
	else if (checksum)
		status = error_set(ERR_STATE, "'%s' is not the file at %s: its checksum is %s, the published one is %s",
				   request->path, origin_of(request), checksum, request->checksum);
	else
		status = error_set(ERR_STATE, "'%s' exists, but nothing shows that it is the file at %s", request->path,
				   origin_of(request));
	error_hint("move it away to download it again, or give another --out");
	return status;
}

enum status fetch_check(const struct fetch_request *request)
{
	struct source_record record;
	if (request->checksum || !file_exists(request->path))
		return OK;
	TRY(source_read(request, &record));
	return record.found && record.same ? OK : refuse_present(request, &record, NULL);
}

/* Whether the file is present. A present file that is not the one requested may be replaced only if it came from the same URL and
 * has the size it had then. */
static enum status find_present(const struct fetch_request *request, bool *present)
{
	struct source_record record;
	char found[CHECKSUM_BYTES];
	*present = false;
	if (!file_exists(request->path))
		return OK;
	TRY(fetch_check(request));
	*present = true;
	if (!request->checksum)
		return OK;
	TRY(checksum_file(request->path, request->checksum, found));
	if (strcmp(found, request->checksum) == 0)
		return OK;
	*present = false;
	TRY(source_read(request, &record));
	if (!record.found || !record.same)
		return refuse_present(request, &record, found);
	log_warning("'%s' has the checksum %s instead of the published %s: downloading it again", request->path, found,
		    request->checksum);
	return OK;
}

/* ---- A transfer ---- */

/* From "Name: value\r\n", copies the value to out if the line has that name. */
static bool header_value(const char *line, size_t size, const char *name, char *out, size_t out_size)
{
	size_t name_size = strlen(name);
	if (size <= name_size || strncasecmp(line, name, name_size) != 0 || line[name_size] != ':')
		return false;
	const char *value = line + name_size + 1, *end = line + size;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
		end--;
	if ((size_t)(end - value) >= out_size)
		return false;
	memcpy(out, value, (size_t)(end - value));
	out[end - value] = 0;
	return true;
}

static size_t on_header(char *line, size_t unit, size_t count, void *context)
{
	struct transfer *t = context;
	size_t size = unit * count;
	char value[VALIDATOR_BYTES];
	t->heard = clock_seconds();
	if (size > 5 && strncmp(line, "HTTP/", 5) == 0) { /* a new response, for example after a redirect */
		t->etag[0] = t->modified[0] = 0;
		t->range_first = t->range_total = -1;
		t->retry_after = 0;
		t->chunked = false;
	} else if (header_value(line, size, "ETag", value, sizeof value)) {
		if (value[0] == '"') /* a weak one (W/"...") does not guarantee identical bytes; without quotes, it is invalid */
			memcpy(t->etag, value, sizeof value);
	} else if (header_value(line, size, "Last-Modified", value, sizeof value)) {
		memcpy(t->modified, value, sizeof value);
	} else if (header_value(line, size, "Content-Range", value, sizeof value)) {
		if (sscanf(value, "bytes %" SCNd64 "-%*d/%" SCNd64, &t->range_first, &t->range_total) < 1)
			(void)sscanf(value, "bytes */%" SCNd64, &t->range_total);
	} else if (header_value(line, size, "Transfer-Encoding", value, sizeof value)) {
		t->chunked |= strcasestr(value, "chunked") != NULL;
	} else if (header_value(line, size, "Retry-After", value, sizeof value)) {
		t->retry_after = strtod(value, NULL); /* a date gives 0: our own pause applies */
	}
	return size;
}

/* Whether the answer says that it is of another file than the piece: some servers honor Range but not If-Range. */
static bool is_of_another(const struct transfer *t)
{
	const char *before = t->part->validator, *now = before[0] == '"' ? t->etag : t->modified;
	return before[0] && now[0] && strcmp(before, now) != 0;
}

/* The body begins: determines whether it is the rest that was requested, the whole file again, or an error page. */
static enum status body_begins(struct transfer *t)
{
	struct part *part = t->part;
	long code = 0;
	curl_off_t length = -1;
	t->library->get(t->curl, CURLINFO_RESPONSE_CODE, &code);
	t->library->get(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	t->begun = true;
	t->stored = code == 200 || code == 206;
	if (!t->stored)
		return OK;
	if (code == 206) {
		bool same =
			t->range_first == part->size && (part->total < 0 || t->range_total < 0 || t->range_total == part->total);
		if (!same || is_of_another(t)) {
			t->mismatch = true;
			return error_set(ERR_DATA, "'%s': the server sent another part", part->path);
		}
		if (part->total < 0)
			part->total = t->range_total;
		return OK;
	}
	if (part->size > 0 && ftruncate(t->descriptor, 0) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot truncate", part->path);
	part->size = 0;
	part->total = length;
	snprintf(part->validator, sizeof part->validator, "%s", t->etag[0] ? t->etag : t->modified);
	int64_t available = folder_free_bytes(t->request->path);
	if (length > 0 && available >= 0 && available < length) {
		char need[FORMAT_BYTES], have[FORMAT_BYTES];
		return error_hinted(error_set(ERR_RESOURCE, "'%s' needs %s, the disk has %s left", t->request->path,
					      format_size(need, (double)length), format_size(have, (double)available)),
				    "give an --out on a larger disk");
	}
	return part_note(part, t->request->url);
}

static size_t on_body(char *bytes, size_t unit, size_t count, void *context)
{
	struct transfer *t = context;
	size_t size = unit * count, done = 0;
	t->heard = clock_seconds();
	if (!t->begun) {
		t->disk = body_begins(t);
		if (t->disk != OK)
			return 0;
	}
	while (t->stored && done < size) {
		ssize_t wrote = file_operations.write(t->descriptor, bytes + done, size - done);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0) {
			t->disk = error_set_errno(ERR_RESOURCE, "'%s': cannot write", t->part->path);
			error_hint("free some space and run the same command again to resume");
			return 0;
		}
		done += (size_t)wrote;
		t->part->size += wrote;
	}
	return size;
}

static int on_progress(void *context, curl_off_t total, curl_off_t received, curl_off_t up_total, curl_off_t up)
{
	struct transfer *t = context;
	double now = clock_seconds();
	(void)total, (void)up_total, (void)up;
	if (received != t->received) {
		t->received = received;
		t->heard = now;
	}
	if (t->request->progress && t->stored && now - t->shown > 0.1) {
		t->shown = now;
		t->request->progress(t->request->context, t->part->size, t->part->total);
	}
	if (now - t->heard > t->settings->stall_seconds)
		t->stalled = true;
	return t->stalled || stop_requested();
}

/* The outcome of an attempt. */
enum verdict { WHOLE, AGAIN, AFRESH, GONE, HOPELESS };

static bool worth_repeating(CURLcode code)
{
	switch (code) {
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_TOO_MANY_REDIRECTS:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_OUT_OF_MEMORY:
	case CURLE_NOT_BUILT_IN: return false;
	default: return true;
	}
}

/* Whether anything other than the end of the connection marks the end of the body. */
static bool is_delimited(struct transfer *t)
{
	long version = 0;
	curl_off_t length = -1;
	t->library->get(t->curl, CURLINFO_HTTP_VERSION, &version);
	t->library->get(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	return length >= 0 || t->chunked || version >= CURL_HTTP_VERSION_2_0;
}

static enum verdict judge(struct transfer *t, CURLcode code, const char *detail, struct fetch_result *result)
{
	struct part *part = t->part;
	char *reason = result->reason;
	long answer = 0;
	t->library->get(t->curl, CURLINFO_RESPONSE_CODE, &answer);
	result->answer = answer;
	if (t->mismatch) {
		snprintf(reason, sizeof result->reason, "the file has changed on the server");
		return AFRESH;
	}
	if (t->stalled) {
		snprintf(reason, sizeof result->reason, "no byte came for %.3g s", t->settings->stall_seconds);
		return AGAIN;
	}
	if (code != CURLE_OK) {
		snprintf(reason, sizeof result->reason, "%.300s", detail[0] ? detail : t->library->explain(code));
		return worth_repeating(code) ? AGAIN : HOPELESS;
	}
	if (answer == 200 || answer == 206) {
		if (part->total < 0 && !t->request->checksum && !is_delimited(t)) {
			snprintf(reason, sizeof result->reason,
				 "the server does not say how long the file is, so it is impossible to tell whether all of it "
				 "arrived: give its --checksum");
			part_remove(part);
			return HOPELESS;
		}
		if (part->total < 0 || part->size == part->total)
			return WHOLE;
		snprintf(reason, sizeof result->reason, "%" PRId64 " of %" PRId64 " bytes came", part->size, part->total);
		return part->size > part->total ? AFRESH : AGAIN;
	}
	snprintf(reason, sizeof result->reason, "the server answers %ld", answer);
	if (answer == 416) {
		if (part->size > 0 && t->range_total == part->size)
			return WHOLE;
		return AFRESH;
	}
	if (answer == 408 || answer == 425 || answer == 429 || answer >= 500)
		return AGAIN;
	return answer >= 400 ? GONE : HOPELESS;
}

/* Allows only http and https, also in redirects. Before 7.85, the library takes bits instead of names. */
static void allow_web_only(const struct curl_library *library, CURL *curl)
{
	enum { PROTOCOLS = CURLOPTTYPE_LONG + 181, REDIR_PROTOCOLS = CURLOPTTYPE_LONG + 182 }; /* deprecated in newer headers */
	if (library->set(curl, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK)
		library->set(curl, (CURLoption)PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
	if (library->set(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https") != CURLE_OK)
		library->set(curl, (CURLoption)REDIR_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
}

/* Makes one request and appends its body to what is present. */
static enum status attempt(const struct curl_library *library, const struct fetch_settings *settings,
			   const struct fetch_request *request, struct part *part, struct fetch_result *result,
			   enum verdict *verdict, double *retry_after)
{
	struct transfer t = {.settings = settings, .request = request, .part = part, .library = library, .descriptor = -1};
	char detail[CURL_ERROR_SIZE] = "", range[32], condition[VALIDATOR_BYTES + 16];
	struct curl_slist *headers = NULL;
	enum status status = OK;

	if (part->size > 0 && !(part->noted && (part->validator[0] || part->total > 0)))
		part_remove(part); /* it is unknown what it is a piece of */
	t.descriptor = file_operations.open(part->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (t.descriptor < 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot write", part->path);
	if (part->size == 0 && ftruncate(t.descriptor, 0) != 0) {
		status = error_set_errno(ERR_RESOURCE, "'%s': cannot truncate", part->path);
		goto done;
	}
	t.curl = library->open();
	if (!t.curl) {
		status = error_set(ERR_RESOURCE, "libcurl cannot start");
		goto done;
	}
	library->set(t.curl, CURLOPT_URL, request->url);
	allow_web_only(library, t.curl);
	library->set(t.curl, CURLOPT_FOLLOWLOCATION, 1L);
	library->set(t.curl, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
	library->set(t.curl, CURLOPT_USERAGENT, "bertc/" VERSION);
	library->set(t.curl, CURLOPT_NOSIGNAL, 1L);
	library->set(t.curl, CURLOPT_CONNECTTIMEOUT_MS, (long)(1000 * settings->stall_seconds));
	library->set(t.curl, CURLOPT_ERRORBUFFER, detail);
	library->set(t.curl, CURLOPT_HEADERFUNCTION, on_header);
	library->set(t.curl, CURLOPT_HEADERDATA, &t);
	library->set(t.curl, CURLOPT_WRITEFUNCTION, on_body);
	library->set(t.curl, CURLOPT_WRITEDATA, &t);
	library->set(t.curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	library->set(t.curl, CURLOPT_XFERINFODATA, &t);
	library->set(t.curl, CURLOPT_NOPROGRESS, 0L);
	if (request->header)
		headers = library->list_append(headers, request->header);
	if (part->size > 0) {
		snprintf(range, sizeof range, "%" PRId64 "-", part->size);
		library->set(t.curl, CURLOPT_RANGE, range);
		if (part->validator[0]) {
			snprintf(condition, sizeof condition, "If-Range: %s", part->validator);
			headers = library->list_append(headers, condition);
		}
	}
	if (headers)
		library->set(t.curl, CURLOPT_HTTPHEADER, headers);
	t.heard = clock_seconds();
	t.range_first = t.range_total = -1;
	CURLcode code = library->perform(t.curl);
	if (t.disk != OK && !t.mismatch)
		status = t.disk;
	else if (stop_requested())
		status = stop_error();
	else if (code == CURLE_OK && !t.begun) { /* an empty body never reached on_body */
		t.disk = status = body_begins(&t);
		if (t.mismatch)
			status = OK;
	}
	if (status == OK)
		*verdict = judge(&t, code, detail, result);
	*retry_after = t.retry_after;
done:
	library->list_free(headers);
	if (t.curl)
		library->close(t.curl);
	if (file_operations.close(t.descriptor) != 0 && status == OK)
		status = error_set_errno(ERR_RESOURCE, "'%s': cannot write", part->path);
	return status;
}

/* Gives a complete file its final name if it has the right checksum. */
static enum status finish(const struct fetch_request *request, struct part *part, bool *right, struct fetch_result *result)
{
	char found[CHECKSUM_BYTES], folder[PATH_BYTES];
	*right = true;
	if (request->checksum) {
		TRY(checksum_file(part->path, request->checksum, found));
		*right = strcmp(found, request->checksum) == 0;
		if (!*right) {
			snprintf(result->reason, sizeof result->reason, "its checksum is %s, published is %s", found,
				 request->checksum);
			part_remove(part);
			return OK;
		}
	}
	int descriptor = file_operations.open(part->path, O_WRONLY | O_CLOEXEC, 0);
	if (descriptor < 0 || file_operations.fsync(descriptor) != 0) {
		enum status status = error_set_errno(ERR_RESOURCE, "'%s': cannot write", part->path);
		if (descriptor >= 0)
			(void)file_operations.close(descriptor);
		return status;
	}
	if (file_operations.close(descriptor) != 0 || file_operations.rename(part->path, request->path) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot name the finished file", request->path);
	unlink(part->note_path);
	if (!request->unrecorded)
		TRY(source_write(request));
	path_folder(folder, request->path);
	return folder_sync(folder);
}

/* Sleeps in short intervals, so that Ctrl-C takes effect. */
static enum status pause_for(double seconds)
{
	double until = clock_seconds() + seconds;
	while (clock_seconds() < until) {
		TRY(stop_check());
		clock_pause(0.02);
	}
	return OK;
}

enum status fetch(const struct fetch_settings *settings, const struct fetch_request *request, struct fetch_result *result)
{
	struct curl_library library;
	struct part part;
	*result = (struct fetch_result){.outcome = FETCH_FAILED};
	bool present;
	TRY(find_present(request, &present));
	if (present) {
		result->outcome = FETCH_PRESENT;
		result->bytes = file_size(request->path);
		return OK;
	}
	TRY(curl_load(&library));
	TRY(part_open(&part, request));
	result->resumed_from = part.size;
	/* Only bytes never received before count as progress, so a server that always breaks off at the same place makes none. */
	int64_t most = part.size;
	int in_vain = 0, wrong = 0, afresh = 0;
	for (;;) {
		enum verdict verdict = AGAIN;
		double wait = 0;
		result->attempts++;
		TRY(attempt(&library, settings, request, &part, result, &verdict, &wait));
		if (verdict == WHOLE) {
			bool right;
			TRY(finish(request, &part, &right, result));
			if (right) {
				result->outcome = FETCH_DONE;
				result->bytes = file_size(request->path);
				return OK;
			}
			if (++wrong == 2)
				return OK;
			continue;
		}
		if (verdict == GONE || verdict == HOPELESS) {
			result->outcome = verdict == GONE ? FETCH_GONE : FETCH_FAILED;
			return OK;
		}
		if (verdict == AFRESH) {
			part_remove(&part);
			if (++afresh > 3)
				return OK;
			continue;
		}
		in_vain = part.size > most ? 0 : in_vain + 1;
		most = part.size > most ? part.size : most;
		if (in_vain > settings->retries)
			return OK;
		double own = settings->pause_seconds * (double)(1 << (in_vain < 6 ? in_vain : 6));
		log_detail("%s: %s; again in %.3g s", request->url, result->reason, wait > own ? wait : own);
		if (wait < own)
			wait = own;
		TRY(pause_for(wait < RETRY_AFTER_MAX ? wait : RETRY_AFTER_MAX));
	}
}
