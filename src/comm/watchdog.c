/* Judges how long each rank has been in its section by how long such sections have taken, and reports the one that hangs.
 * */
#include "comm/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/condition.h"
#include "base/log.h"
#include "base/memory.h"

#define SECOND ((int64_t)1000000000)
#define KNOWN_SECTIONS 24

struct known_section {
	char name[SECTION_BYTES];
	int64_t longest; /* ns; 0: it has never ended yet */
};

struct watchdog {
	struct segment *segment;
	int64_t least; /* minimum limit of a section, ns */
	struct known_section known[KNOWN_SECTIONS];
	int32_t known_count, current;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool started, quit;
	int *peers; /* [size] a descriptor (pidfd) of each other process, or -1 */
};

static struct known_section *find_section(struct watchdog *watchdog, const char *name)
{
	for (int32_t i = 0; i < watchdog->known_count; i++)
		if (strncmp(watchdog->known[i].name, name, SECTION_BYTES - 1) == 0)
			return &watchdog->known[i];
	if (watchdog->known_count == KNOWN_SECTIONS)
		return &watchdog->known[KNOWN_SECTIONS - 1];
	struct known_section *section = &watchdog->known[watchdog->known_count++];
	snprintf(section->name, sizeof section->name, "%s", name);
	return section;
}

/* Ends a stretch of the current section: the time since it last showed progress. */
static void end_stretch(struct watchdog *watchdog, int64_t now)
{
	struct segment_rank *own = &watchdog->segment->header->ranks[watchdog->segment->rank];
	struct known_section *section = &watchdog->known[watchdog->current];
	int64_t took = now - atomic_load(&own->since);
	if (atomic_load(&own->step) > 0 && took > section->longest)
		section->longest = took;
	atomic_store(&own->since, now);
}

void watchdog_alive(struct watchdog *watchdog)
{
	end_stretch(watchdog, segment_now());
}

void watchdog_section(struct watchdog *watchdog, const char *name, int64_t step)
{
	struct segment_rank *own = &watchdog->segment->header->ranks[watchdog->segment->rank];
	struct known_section *section = find_section(watchdog, name);
	end_stretch(watchdog, segment_now());
	watchdog->current = (int32_t)(section - watchdog->known);

	int64_t limit = section->longest * 5 > watchdog->least ? section->longest * 5 : watchdog->least;
	if (section->longest == 0)
		limit *= 10;
	atomic_store(&own->limit, step > 0 ? limit : 0);
	atomic_store(&own->step, step);
	segment_set_section(own, name);
	rank_fault(watchdog->segment->rank, name, step);
}

/* 'T' for a process that a signal has stopped, etc.; '?' if unknown. */
static char process_state(int32_t pid)
{
	char path[64], line[512] = "";
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return '?';
	size_t got = fread(line, 1, sizeof line - 1, file);
	fclose(file);
	line[got] = '\0';
	const char *end = strrchr(line, ')');
	return end && end[1] == ' ' ? end[2] : '?';
}

static const char *state_words(char state)
{
	return state == 'T'   ? ": a signal has stopped it"
	       : state == 'D' ? ": it waits for a disk or a device"
	       : state == 'Z' ? ": it has died"
			      : "";
}

/* Is the rank on this machine, where processes can be inspected? */
static bool is_here(const struct segment_rank *rank)
{
	char host[sizeof rank->host] = "";
	gethostname(host, sizeof host - 1);
	return strcmp(host, rank->host) == 0;
}

static bool judge(const struct watcher *watcher, const struct segment *segment, int32_t rank, int64_t now, struct error *out)
{
	const struct segment_rank *other = &segment->header->ranks[rank];
	int32_t pid = atomic_load(&other->pid);
	int64_t beat = atomic_load(&other->beat), since = atomic_load(&other->since), limit = atomic_load(&other->limit);
	char duration[FORMAT_BYTES];
	beat = beat > watcher->forgiven ? beat : watcher->forgiven;
	since = since > watcher->forgiven ? since : watcher->forgiven;
	if (pid == 0 && now - watcher->forgiven > 10 * watcher->limit) {
		snprintf(out->message, sizeof out->message, "rank %d did not arrive within %s", rank,
			 format_duration(duration, 10e-9 * (double)watcher->limit));
		out->status = ERR_PEER;
		return true;
	}
	if (pid == 0 || atomic_load(&other->left))
		return false;
	bool is_late = limit > 0 && now - since > limit && atomic_load(&other->waiting) == 0;
	/* If the rank is silent as well, report the silence: it is all that is known. */
	if (now - beat > watcher->limit || (is_late && now - beat > watcher->limit / 2))
		snprintf(out->message, sizeof out->message,
			 "rank %d on %s (process %d) has given no sign of life for %s, in '%s' of step %lld%s", rank, other->host,
			 pid, format_duration(duration, 1e-9 * (double)(now - beat)), SECTION_OF(other),
			 (long long)atomic_load(&other->step), is_here(other) ? state_words(process_state(pid)) : "");
	else if (is_late)
		snprintf(out->message, sizeof out->message, "rank %d on %s (process %d) hangs in '%s' of step %lld for %s", rank,
			 other->host, pid, SECTION_OF(other), (long long)atomic_load(&other->step),
			 format_duration(duration, 1e-9 * (double)(now - since)));
	else
		return false;
	snprintf(out->hint, sizeof out->hint,
		 "the last checkpoint is intact: run the same command again to resume; --watchdog_seconds allows more time");
	out->status = ERR_PEER;
	return true;
}

/* Do all ranks wait, for longer than their limits? Then they wait for different things. */
static bool all_wait(const struct watcher *watcher, const struct segment *segment, int64_t now, struct error *out)
{
	size_t used = 0;
	for (int32_t rank = 0; rank < segment->header->size; rank++) {
		const struct segment_rank *other = &segment->header->ranks[rank];
		int64_t since = atomic_load(&other->since), limit = atomic_load(&other->limit);
		since = since > watcher->forgiven ? since : watcher->forgiven;
		if (limit == 0 || now - since <= limit || atomic_load(&other->waiting) == 0)
			return false;
	}
	used += (size_t)snprintf(out->message, sizeof out->message, "all ranks wait for each other:");
	for (int32_t rank = 0; rank < segment->header->size && used < sizeof out->message - 120; rank++) {
		const struct segment_rank *other = &segment->header->ranks[rank];
		used += (size_t)snprintf(out->message + used, sizeof out->message - used, "%s rank %d in '%s' of step %lld",
					 rank ? "," : "", rank, SECTION_OF(other), (long long)atomic_load(&other->step));
	}
	snprintf(out->hint, sizeof out->hint, "the last checkpoint is intact: run the same command again to resume");
	out->status = ERR_PEER;
	return true;
}

/* A watcher that was not running itself cannot tell whether others were. */
static int64_t begin_to_look(struct watcher *watcher)
{
	int64_t now = segment_now();
	if (watcher->looked == 0 || now - watcher->looked > 3 * SECOND)
		watcher->forgiven = now;
	watcher->looked = now;
	return now;
}

bool watcher_look_at(struct watcher *watcher, const struct segment *segment, int32_t rank, struct error *out)
{
	*out = (struct error){0};
	return judge(watcher, segment, rank, begin_to_look(watcher), out);
}

bool watcher_look(struct watcher *watcher, const struct segment *segment, int32_t *out_rank, struct error *out)
{
	int64_t now = begin_to_look(watcher);
	*out = (struct error){0};
	for (*out_rank = 0; *out_rank < segment->header->size; ++*out_rank)
		if (judge(watcher, segment, *out_rank, now, out))
			return true;
	*out_rank = -1;
	return all_wait(watcher, segment, now, out);
}

/* Finds a process that died without announcing that it leaves. Its descriptor is then readable. */
static bool find_dead(struct watchdog *watchdog, int32_t *out_rank, struct error *out)
{
	struct segment_header *header = watchdog->segment->header;
	for (int32_t rank = 0; rank < header->size; rank++) {
		struct segment_rank *other = &header->ranks[rank];
		int32_t pid = atomic_load(&other->pid);
		if (rank == watchdog->segment->rank || pid == 0 || atomic_load(&other->left))
			continue;
		if (watchdog->peers[rank] < 0)
			watchdog->peers[rank] = (int)syscall(SYS_pidfd_open, pid, 0);
		struct pollfd facts = {.fd = watchdog->peers[rank], .events = POLLIN};
		bool gone = watchdog->peers[rank] < 0 ? kill(pid, 0) != 0 && errno == ESRCH : poll(&facts, 1, 0) == 1;
		if (!gone || atomic_load(&other->left))
			continue;
		*out = (struct error){.status = ERR_PEER};
		snprintf(out->message, sizeof out->message, "rank %d on %s (process %d) died in '%s' of step %lld", rank,
			 other->host, pid, SECTION_OF(other), (long long)atomic_load(&other->step));
		snprintf(out->hint, sizeof out->hint, "the last checkpoint is intact: run the same command again to resume");
		*out_rank = rank;
		return true;
	}
	return false;
}

/* Called if the process does not end by itself: its other threads wait for something, or compute. */
static void leave_now(struct watchdog *watchdog)
{
	char text[sizeof(struct error) + 64];
	enum status status = segment_check(watchdog->segment);
	int length = snprintf(text, sizeof text, "bertc: %s\nhint: %s\n", error_last()->message, error_last()->hint);
	if (!watchdog->segment->header->reported && write(STDERR_FILENO, text, (size_t)length) < 0)
		_exit((int)status); /* nobody can be told */
	_exit((int)status);
}

static void *watchdog_main(void *argument)
{
	struct watchdog *watchdog = argument;
	struct segment *segment = watchdog->segment;
	struct segment_header *header = segment->header;
	struct watcher watcher = {.limit = watchdog->least};
	int64_t interval = watchdog->least / 4 < SECOND / 2 ? watchdog->least / 4 : SECOND / 2, failed = 0;
	struct error error;
	int32_t rank;
	pthread_mutex_lock(&watchdog->lock);
	while (!watchdog->quit) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += interval;
		until.tv_sec += until.tv_nsec / SECOND;
		until.tv_nsec %= SECOND;
		pthread_cond_timedwait(&watchdog->changed, &watchdog->lock, &until);
		int64_t now = segment_now();
		atomic_store(&header->ranks[segment->rank].beat, now);
		if (atomic_load(&header->failed) == 2) {
			failed = failed ? failed : now;
			if (now - failed > LEAVE_SECONDS * SECOND)
				leave_now(watchdog);
		} else if (!header->watched &&
			   (find_dead(watchdog, &rank, &error) || watcher_look(&watcher, segment, &rank, &error))) {
			segment_fail(segment, rank, &error);
		} else if (header->watched && !header->reported && watcher_look_at(&watcher, segment, segment->rank, &error)) {
			/* This rank's own messages may hang, too, and then no other rank could tell it. */
			segment_fail(segment, segment->rank, &error);
			kill(getpid(), SIGUSR2);
		}
	}
	pthread_mutex_unlock(&watchdog->lock);
	return NULL;
}

enum status watchdog_open(struct watchdog **out, struct segment *segment, double seconds)
{
	struct watchdog *watchdog;
	int32_t size = segment->header->size;
	TRY(memory_new(&watchdog, 1, sizeof *watchdog, "the watchdog"));
	watchdog->segment = segment;
	watchdog->least = watchdog_nanoseconds(seconds);
	pthread_mutex_init(&watchdog->lock, NULL);
	condition_init(&watchdog->changed);
	*out = watchdog;
	enum status status = memory_new(&watchdog->peers, size, sizeof *watchdog->peers, "the watchdog");
	for (int32_t rank = 0; status == OK && rank < size; rank++)
		watchdog->peers[rank] = -1;
	if (status == OK && pthread_create(&watchdog->thread, NULL, watchdog_main, watchdog) != 0)
		status = error_set(ERR_RESOURCE, "cannot start the watchdog's thread");
	watchdog->started = status == OK;
	if (status != OK) {
		watchdog_close(watchdog);
		*out = NULL;
		return status;
	}
	rank_stack_install();
	rank_fault(segment->rank, "start", 0);
	return OK;
}

void watchdog_close(struct watchdog *watchdog)
{
	if (!watchdog)
		return;
	pthread_mutex_lock(&watchdog->lock);
	watchdog->quit = true;
	pthread_cond_broadcast(&watchdog->changed);
	pthread_mutex_unlock(&watchdog->lock);
	if (watchdog->started)
		pthread_join(watchdog->thread, NULL);
	for (int32_t rank = 0; watchdog->peers && rank < watchdog->segment->header->size; rank++)
		if (watchdog->peers[rank] >= 0)
			close(watchdog->peers[rank]);
	pthread_mutex_destroy(&watchdog->lock);
	pthread_cond_destroy(&watchdog->changed);
	free(watchdog->peers);
	free(watchdog);
}
