/* Parses durations such as 1h30m, 2-12:00:00, or 90. */
#include "base/duration.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Takes a number without sign, exponent, or hexadecimal form, all of which strtod would accept. */
static bool take_number(const char **at, bool with_point, double *out)
{
	const char *end = *at;
	while (isdigit((unsigned char)*end) || (with_point && *end == '.'))
		end++;
	if (!isdigit((unsigned char)**at))
		return false;
	double value = 0, unit = 1;
	bool fraction = false;
	for (const char *digit = *at; digit < end; digit++) {
		if (*digit == '.') {
			if (fraction)
				return false;
			fraction = true;
			continue;
		}
		value = value * 10 + (*digit - '0');
		if (fraction)
			unit *= 10;
	}
	*out = value / unit;
	*at = end;
	return true;
}

/* "1h30m": each unit at most once, largest first. */
static bool parse_units(const char *text, double *out)
{
	static const struct {
		char letter;
		double seconds;
	} units[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
	size_t next = 0;
	*out = 0;
	while (*text) {
		double number;
		if (!take_number(&text, true, &number))
			return false;
		while (next < 4 && units[next].letter != tolower((unsigned char)*text))
			next++;
		if (next == 4)
			return false;
		*out += number * units[next++].seconds;
		text++;
	}
	return true;
}

/* "[D-]H:M:S" or "M:S": all but the first are below 60. */
static bool parse_clock(const char *text, double *out)
{
	double days = 0, parts[3];
	int count = 0;
	bool has_days = strchr(text, '-') != NULL;
	if (has_days && (!take_number(&text, false, &days) || *text++ != '-'))
		return false;
	do {
		if (count == 3 || !take_number(&text, false, &parts[count]) || (count > 0 && parts[count] >= 60))
			return false;
		count++;
	} while (*text == ':' && *text++);
	if (*text || (has_days ? count != 3 : count < 2))
		return false;
	*out = days * 86400;
	for (int i = 0, weight = count == 3 ? 3600 : 60; i < count; i++, weight /= 60)
		*out += parts[i] * weight;
	return true;
}

enum status duration_parse(const char *text, double *out_seconds)
{
	const char *at = text;
	bool known = (take_number(&at, true, out_seconds) && *at == '\0') ||
		     (strpbrk(text, ":-") ? parse_clock(text, out_seconds) : parse_units(text, out_seconds));
	if (known && *text && *out_seconds > 0 && isfinite(*out_seconds))
		return OK;
	return error_hinted(error_set(ERR_USAGE, "'%.100s' is not a length of time", text),
			    "write seconds (5400), units (1h30m), or a clock time (1:30:00, with days 1-12:00:00)");
}
