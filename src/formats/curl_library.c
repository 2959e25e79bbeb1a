/* Loads libcurl and finds its functions. */
#include "formats/curl_library.h"

#include "base/shared_library.h"

enum status curl_load(struct curl_library *out)
{
	void *handle;
	static const struct shared_library library = {
		.name = "libcurl",
		.files = {"libcurl.so.4", "libcurl-gnutls.so.4"},
		.package = "libcurl (the package libcurl4 of Debian and Ubuntu, libcurl of Fedora)",
		.instead = "download the files with another program"};
	const struct shared_library_function functions[] = {
		{"curl_version", &out->version},          {"curl_easy_init", &out->open},
		{"curl_easy_setopt", &out->set},          {"curl_easy_perform", &out->perform},
		{"curl_easy_getinfo", &out->get},         {"curl_easy_cleanup", &out->close},
		{"curl_easy_strerror", &out->explain},    {"curl_slist_append", &out->list_append},
		{"curl_slist_free_all", &out->list_free},
	};
	return shared_library_open(&handle, &library, functions, sizeof functions / sizeof functions[0]);
}
