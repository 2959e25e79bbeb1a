/* What servers answer to `bertc download`. libcurl's functions are replaced by our own, which deliver the bytes of the
 * input as libcurl would: an answer is "HTTP/1.1 CODE", header lines, a blank line, and a body up to 0xFF; with 0xFE
 * instead, the connection breaks there. The first byte chooses whether the file has a known checksum, whether an earlier
 * process left a part (in which case the note beside it comes first, up to 0xFF), and the size of the pieces that arrive. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stdarg.h>
#include "base/file.h"
#include "formats/checksum.h"
#include "formats/fetch.h"
#include "fuzz.h"

FUZZ_SEEDS(
	FUZZ_SEED("\0HTTP/1.1 200\nContent-Length: 4\nETag: \"a\"\n\nbody\xff"),
	FUZZ_SEED("\5HTTP/1.1 200\nLast-Modified: b\nContent-Length: 4\n\nbo\xfeHTTP/1.1 206\nContent-Range: bytes "
		  "2-3/4\nContent-Length: 2\n\ndy\xff"),
	FUZZ_SEED("\0HTTP/1.1 200\nETag: c\nContent-Length: 4\n\nbo\xfeHTTP/1.1 206\nContent-Range: bytes "
		  "0-3/9\n\ndy\xffHTTP/1.1 416\nContent-Range: bytes */2\n\n\xff"),
	FUZZ_SEED("\1HTTP/1.1 200\nETag: W/\"d\"\n\nother\xffHTTP/1.1 200\n\nbody\xff"),
	FUZZ_SEED("\3{\"url\": \"http://fuzz/got\", \"validator\": \"\\\"a\\\"\", \"total\": 4}\xffHTTP/1.1 206\nContent-Range: "
		  "bytes 2-3/4\n\ndy\xff"),
	FUZZ_SEED("\0HTTP/1.1 200\nTransfer-Encoding: chunked\n\nbody\xff"),
	FUZZ_SEED("\0HTTP/1.1 503\nRetry-After: 3\n\nlater\xff"), FUZZ_SEED("\0HTTP/1.1 404\n\nnone\xff"),
	FUZZ_SEED("\0HTTP/1.1 302\nETag: e\n\n\xff"))

/* Leaves a file with these bytes in the folder, written as by any program. */
static void leave(const char *name, const char *bytes, size_t size)
{
	char path[320];
	snprintf(path, sizeof path, "%s/%s", fuzz_folder, name);
	FILE *file = fopen(path, "wb");
	BUG_IF(!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0);
}

/* The rest of the input. */
static const char *answers, *answers_end;

static struct {
	size_t (*on_header)(char *, size_t, size_t, void *);
	size_t (*on_body)(char *, size_t, size_t, void *);
	int (*on_progress)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
	void *header_context, *body_context, *progress_context;
	size_t piece;
	long code;
	curl_off_t length;
} transfer;

CURL *curl_easy_init(void)
{
	return (CURL *)&transfer;
}

void curl_easy_cleanup(CURL *curl)
{
	(void)curl;
}

const char *curl_easy_strerror(CURLcode code)
{
	(void)code;
	return "broken";
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
	BUG_IF(strlen(text) > 600);
	return list;
}

void curl_slist_free_all(struct curl_slist *list)
{
	(void)list;
}

CURLcode curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
	va_list arguments;
	(void)curl;
	va_start(arguments, option);
	if (option == CURLOPT_HEADERFUNCTION)
		transfer.on_header = va_arg(arguments, size_t(*)(char *, size_t, size_t, void *));
	else if (option == CURLOPT_WRITEFUNCTION)
		transfer.on_body = va_arg(arguments, size_t(*)(char *, size_t, size_t, void *));
	else if (option == CURLOPT_XFERINFOFUNCTION)
		transfer.on_progress = va_arg(arguments, int (*)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t));
	else if (option == CURLOPT_HEADERDATA)
		transfer.header_context = va_arg(arguments, void *);
	else if (option == CURLOPT_WRITEDATA)
		transfer.body_context = va_arg(arguments, void *);
	else if (option == CURLOPT_XFERINFODATA)
		transfer.progress_context = va_arg(arguments, void *);
	va_end(arguments);
	return CURLE_OK;
}

CURLcode curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
	va_list arguments;
	(void)curl;
	va_start(arguments, info);
	if (info == CURLINFO_RESPONSE_CODE)
		*va_arg(arguments, long *) = transfer.code;
	else if (info == CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
		*va_arg(arguments, curl_off_t *) = transfer.length;
	va_end(arguments);
	return CURLE_OK;
}

/* Delivers the header lines, each in a block of its own without a NUL after it; false if the answer ends before they do. */
static bool give_headers(bool *out_later)
{
	for (;;) {
		const char *newline = memchr(answers, '\n', (size_t)(answers_end - answers));
		if (!newline)
			return false;
		size_t size = (size_t)(newline - answers) + 1;
		char *line = fuzz_copy((const uint8_t *)answers, size);
		if (size > 9 && memcmp(line, "HTTP/1.1 ", 9) == 0)
			transfer.code = strtol(answers + 9, NULL, 10) % 1000;
		if (size > 16 && memcmp(line, "Content-Length: ", 16) == 0)
			transfer.length = strtoll(answers + 16, NULL, 10);
		if (transfer.length < -1)
			transfer.length = -1;
		*out_later |= size > 12 && strncasecmp(line, "Retry-After:", 12) == 0;
		BUG_IF(transfer.on_header(line, 1, size, transfer.header_context) != size);
		free(line);
		answers = newline + 1;
		if (size == 1)
			return true;
	}
}

CURLcode curl_easy_perform(CURL *curl)
{
	bool later = false;
	(void)curl;
	transfer.code = 0;
	transfer.length = -1;
	if (answers >= answers_end)
		return CURLE_COULDNT_CONNECT;
	if (!give_headers(&later)) {
		answers = answers_end;
		return CURLE_RECV_ERROR;
	}
	size_t size = 0, left = (size_t)(answers_end - answers);
	while (size < left && (unsigned char)answers[size] < 0xfe)
		size++;
	bool broken = size < left && (unsigned char)answers[size] == 0xfe;
	const char *body = answers;
	answers += size + (size < left);
	/* An answer that asks for a later retry sends no data, or the target would sleep until then. */
	if (later)
		return CURLE_RECV_ERROR;
	for (size_t at = 0; at < size; at += transfer.piece) {
		size_t piece = size - at < transfer.piece ? size - at : transfer.piece;
		if (transfer.on_body((char *)(uintptr_t)body + at, 1, piece, transfer.body_context) != piece)
			return CURLE_WRITE_ERROR;
		if (transfer.on_progress(transfer.progress_context, transfer.length, (curl_off_t)(at + piece), 0, 0))
			return CURLE_ABORTED_BY_CALLBACK;
	}
	if (broken || (transfer.length >= 0 && (size_t)transfer.length > size))
		return CURLE_PARTIAL_FILE;
	return CURLE_OK;
}

static int sync_nothing(int descriptor)
{
	(void)descriptor;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct fetch_settings settings = {.stall_seconds = 1000};
	static char path[300], body_sum[CHECKSUM_BYTES];
	struct fetch_result result;
	if (count == 0)
		return 0;
	if (!path[0]) {
		const char *body = fuzz_file("body", (const uint8_t *)"body", 4);
		BUG_IF(checksum_file(body, "md5:", body_sum) != OK);
		snprintf(path, sizeof path, "%s/got", fuzz_folder);
		file_operations.fsync = sync_nothing;
	}
	char *copy = malloc(count); /* the last byte ends numbers that would otherwise continue */
	BUG_IF(!copy);
	memcpy(copy, bytes + 1, count - 1);
	copy[count - 1] = 0;
	answers = copy;
	answers_end = copy + count - 1;
	const char *note_end = bytes[0] & 2 ? memchr(answers, 0xff, count - 1) : NULL;
	if (note_end) {
		leave("got.part.json", answers, (size_t)(note_end - answers));
		leave("got.part", "bo", 2);
		answers = note_end + 1;
	}
	transfer.piece = 1 + bytes[0] / 2;
	const char *checksum = bytes[0] & 1 ? body_sum : NULL;
	struct fetch_request request = {.url = "http://fuzz/got", .path = path, .checksum = checksum};
	enum status status = fetch(&settings, &request, &result);
	BUG_IF(status != OK && status != ERR_RESOURCE);
	if (status == OK && result.outcome == FETCH_DONE) {
		BUG_IF(file_size(path) != result.bytes);
		BUG_IF(checksum && result.bytes != 4);
	} else {
		BUG_IF(file_exists(path));
	}
	free(copy);
	char part[340];
	static const char *const names[] = {"got", "got.part", "got.part.json", ".got.source.json"};
	for (int i = 0; i < 4; i++) {
		snprintf(part, sizeof part, "%s/%s", fuzz_folder, names[i]);
		unlink(part);
	}
	return 0;
}
