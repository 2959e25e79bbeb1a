#include "comm/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A number of the environment; `found` false where there is none. */
static enum status read_number(const char *name, int64_t low, int64_t high, bool *found, int32_t *out)
{
	const char *text = getenv(name);
	char *end;
	*found = text && *text;
	if (!*found)
		return OK;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (*end || errno || value < low || value > high)
		return error_set(ERR_USAGE, "the variable %s is '%s': no number from %lld to %lld", name, text, (long long)low,
				 (long long)high);
	*out = (int32_t)value;
	return OK;
}

/* What our launcher says. */
static enum status find_launched(struct place *out)
{
	bool found;
	int32_t segment;
	TRY(read_number(PLACE_RANK, 0, 65535, &found, &out->ranks.rank));
	TRY(read_number(PLACE_SIZE, 1, 65536, &found, &out->ranks.size));
	TRY(read_number(PLACE_CORES, 0, 65536, &found, &out->cores));
	TRY(read_number(PLACE_RESTARTS, 0, INT32_MAX, &found, &out->restarts));
	TRY(read_number(PLACE_SEGMENT, 0, 65536, &found, &segment));
	out->ranks.local_rank = out->ranks.rank;
	out->ranks.local_size = out->ranks.size;
	out->segment = segment;
	out->meeting = MEETING_SEGMENT;
	out->launched = true;
	return OK;
}

enum status place_find(struct place *out)
{
	*out = (struct place){.ranks = {.size = 1, .local_size = 1}, .meeting = MEETING_ALONE, .segment = -1};
	gethostname(out->ranks.host, sizeof(out->ranks.host) - 1);
	if (getenv(PLACE_SEGMENT))
		return find_launched(out);
	return OK;
}
