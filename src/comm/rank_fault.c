/* Deliberate faults, for tests. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/place.h"
#include "comm/watchdog.h"

/* Is the part of `text` up to the next colon `value`, or "*"? Moves *text past it. */
static bool next_is(const char **text, const char *value)
{
	size_t length = strcspn(*text, ":");
	bool is = strncmp(*text, "*", length) == 0 || (strlen(value) == length && strncmp(*text, value, length) == 0);
	*text += length + ((*text)[length] == ':');
	return is;
}

void rank_fault(int32_t rank, const char *section, int64_t step)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {{"SIGKILL", SIGKILL}, {"SIGSTOP", SIGSTOP}, {"SIGSEGV", SIGSEGV}, {"SIGABRT", SIGABRT}};
	const char *text = getenv("BERTC_RANK_FAULT"), *restarts = getenv(PLACE_RESTARTS);
	if (!restarts)
		restarts = getenv("TORCHELASTIC_RESTART_COUNT");
	char number[32], step_number[32];
	if (!text || (restarts && strcmp(restarts, "0") != 0))
		return;
	snprintf(number, sizeof number, "%d", rank);
	snprintf(step_number, sizeof step_number, "%lld", (long long)step);
	bool now = next_is(&text, number);
	now &= next_is(&text, section);
	now &= next_is(&text, step_number);
	if (!now)
		return;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (strcmp(text, signals[i].name) == 0) {
			signal(signals[i].number, SIG_DFL); /* sanitizers install handlers */
			kill(getpid(), signals[i].number);
		}
	if (strcmp(text, "exit") == 0)
		_exit(ERR_INTERNAL);
	while (strcmp(text, "hang") == 0)
		pause();
}
