/* The libcurl functions that we call. Only downloads need libcurl, and it depends on forty other libraries, so it is loaded at
 * the first download. */
#ifndef FORMATS_CURL_LIBRARY_H
#define FORMATS_CURL_LIBRARY_H

#include <curl/curl.h>
#include "base/error.h"

/* Each as curl.h declares it. */
struct curl_library {
	__typeof__(curl_version) *version;
	__typeof__(curl_easy_init) *open;
	__typeof__(curl_easy_setopt) *set;
	__typeof__(curl_easy_perform) *perform;
	__typeof__(curl_easy_getinfo) *get;
	__typeof__(curl_easy_cleanup) *close;
	__typeof__(curl_easy_strerror) *explain;
	__typeof__(curl_slist_append) *list_append;
	__typeof__(curl_slist_free_all) *list_free;
};

/* Loads it for the lifetime of the process. ERR_RESOURCE: this machine does not have it. */
MUST_USE enum status curl_load(struct curl_library *out);

#endif
