/* What all functions of libbertc share: checking arguments, handing errors to the caller, and silence on standard error. */
#include "library/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

BERTC_API const char *bertc_version(void)
{
	return VERSION;
}

BERTC_API int32_t bertc_abi(void)
{
	return BERTC_ABI;
}

BERTC_API void bertc_free(void *memory)
{
	free(memory);
}

/* ---- Warnings ---- */

static void drop_warning(void *context, const char *message)
{
	(void)context, (void)message;
}

/* Standard error belongs to the caller. */
__attribute__((constructor)) static void library_begin(void)
{
	log_level = LOG_QUIET;
	log_progress = false;
	log_warnings_to(drop_warning, NULL);
}

BERTC_API void bertc_on_warning(void (*take)(void *context, const char *message), void *context)
{
	log_warnings_to(take ? take : drop_warning, context);
}

/* ---- Errors ---- */

bertc_status library_leave(enum status status, bertc_error *out)
{
	if (!out)
		return (bertc_status)status;
	const struct error *error = error_last();
	_Static_assert(sizeof out->message >= sizeof error->message, "a message fits");
	_Static_assert(sizeof out->hint >= sizeof error->hint, "a hint fits");
	out->status = (bertc_status)status;
	out->message[0] = out->hint[0] = '\0';
	if (status != OK) {
		memcpy(out->message, error->message, strlen(error->message) + 1);
		memcpy(out->hint, error->hint, strlen(error->hint) + 1);
	}
	return out->status;
}

/* ---- Arguments ---- */

enum status library_options(void *out, size_t size, const void *given, const char *name)
{
	memset(out, 0, size);
	if (!given)
		return OK;
	size_t said;
	memcpy(&said, given, sizeof said);
	if (said < sizeof said || said > 65536)
		return error_hinted(error_set(ERR_USAGE, "the size of %s is %zu", name, said),
				    "set its member `size` to sizeof(%s)", name);
	const unsigned char *bytes = given;
	for (size_t i = size; i < said; i++)
		if (bytes[i])
			return error_set(ERR_USAGE, "%s has a member that this version of the library (%s) does not know", name,
					 VERSION);
	memcpy(out, given, said < size ? said : size);
	return OK;
}

enum status library_given(const void *argument, const char *name)
{
	return argument ? OK : error_set(ERR_USAGE, "%s is NULL", name);
}

enum status library_not_negative(int64_t value, const char *name)
{
	return value >= 0 ? OK : error_set(ERR_USAGE, "%s is %lld", name, (long long)value);
}

enum status library_texts(const char *const *texts, int64_t count, const char *name, bool optional)
{
	TRY(library_not_negative(count, "count"));
	if (count == 0 || (optional && !texts))
		return OK;
	TRY(library_given(texts, name));
	for (int64_t i = 0; i < count && !optional; i++)
		if (!texts[i])
			return error_set(ERR_USAGE, "%s[%lld] is NULL", name, (long long)i);
	return OK;
}
