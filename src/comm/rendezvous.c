/* Publishes and finds shared memory by a name in /dev/shm, and removes the names of dead processes. */
#include "comm/rendezvous.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "comm/segment.h"

#define PATIENCE_SECONDS 600
#define NOTE_SECONDS 10
#define SIBLING_SECONDS 2
#define DEAD_SECONDS 60 /* if a name's process is dead for this long, no other rank 0 is expected */
#define FOLDER "/dev/shm"
#define START "bertc-"

static void name_path(char out[PATH_BYTES], const struct place *place)
{
	snprintf(out, PATH_BYTES, FOLDER "/" START "%u-%.95s", (unsigned)getuid(), place->name);
}

/* When a process began, in clock ticks since boot: together with its ID, this identifies a process uniquely. 0: there is no
 * such process. Its first thread's file is read, since qemu makes up /proc/PID/stat for the process that it emulates. */
static uint64_t process_start(int pid)
{
	char path[64];
	struct buffer text = {0};
	uint64_t start = 0;
	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, pid);
	if (file_read(path, 1 << 16, &text) == OK) {
		/* Field 22. Field 2, the name, may contain anything, but ends with the last parenthesis. */
		const char *at = strrchr(buffer_string(&text), ')');
		for (int field = 2; at && field < 22; field++)
			at = strchr(at + 1, ' ');
		if (at)
			sscanf(at, " %" SCNu64, &start);
	}
	buffer_release(&text);
	return start;
}

/* The content of a name's file: which process has the descriptor. */
struct note {
	int pid, descriptor;
	uint64_t start;
	bool alive; /* its process is alive */
};

static bool note_read(const char *path, struct note *out)
{
	struct buffer text = {0};
	*out = (struct note){0};
	bool found = file_exists(path) && file_read(path, 4096, &text) == OK &&
		     sscanf(buffer_string(&text), "%d %" SCNu64 " %d", &out->pid, &out->start, &out->descriptor) == 3;
	buffer_release(&text);
	out->alive = found && out->start != 0 && out->start == process_start(out->pid);
	return found;
}

/* Removes the names of ranks that were killed before they could remove them. */
static void remove_dead_names(void)
{
	struct name_list names = {0};
	struct note note;
	char path[PATH_BYTES], start[32];
	snprintf(start, sizeof start, START "%u-", (unsigned)getuid());
	if (folder_list(FOLDER, &names) == OK)
		for (int64_t i = 0; i < names.count; i++)
			if (strncmp(names.names[i], start, strlen(start)) == 0 && path_join(path, FOLDER, names.names[i]) == OK &&
			    note_read(path, &note) && !note.alive)
				unlink(path);
	name_list_release(&names);
}

static enum status make(const struct place *place, int *out_file)
{
	struct segment segment;
	char path[PATH_BYTES], text[96];
	remove_dead_names();
	TRY(segment_create(&segment, place->ranks.local_size, false));
	int file = fcntl(segment.file, F_DUPFD_CLOEXEC, 0);
	segment_leave(&segment);
	if (file < 0)
		return error_set_errno(ERR_RESOURCE, "no file descriptor for the memory that ranks share");
	name_path(path, place);
	int length = snprintf(text, sizeof text, "%d %" PRIu64 " %d\n", getpid(), process_start(getpid()), file);
	enum status status = file_write(path, text, (size_t)length);
	if (status != OK)
		close(file);
	else
		*out_file = file;
	return status;
}

/* `dead`: the name exists, but its process does not. `sibling`: that process also began when this one did, so it belonged to
 * this job. */
static bool find(const struct place *place, int *out_file, bool *dead, bool *sibling)
{
	char path[PATH_BYTES];
	struct note note;
	name_path(path, place);
	*dead = note_read(path, &note) && !note.alive;
	*sibling = note.start + SIBLING_SECONDS * (uint64_t)sysconf(_SC_CLK_TCK) >= process_start(getpid());
	if (!note.alive)
		return false;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", note.pid, note.descriptor);
	*out_file = open(path, O_RDWR | O_CLOEXEC);
	return *out_file >= 0;
}

static enum status rank_0_died(const struct place *place)
{
	char path[PATH_BYTES];
	name_path(path, place);
	unlink(path);
	return error_hinted(error_set(ERR_PEER, "rank 0 of this machine died before the ranks had connected"),
			    "see its own messages for the reason; run the same command again");
}

enum status rendezvous_find(const struct place *place, int *out_file)
{
	double started = clock_seconds();
	bool noted = false, dead, sibling;
	if (place->ranks.local_rank == 0)
		return make(place, out_file);
	while (!find(place, out_file, &dead, &sibling)) {
		double waited = clock_seconds() - started;
		if (dead && (sibling || waited > DEAD_SECONDS))
			return rank_0_died(place);
		if (waited > PATIENCE_SECONDS)
			return error_hinted(
				error_set(ERR_PEER, "rank 0 of this machine did not arrive within %d s", PATIENCE_SECONDS),
				"rank %d waited for it under the name '%s'; if the ranks are on several machines, their launcher "
				"must "
				"say so (LOCAL_RANK, LOCAL_WORLD_SIZE)",
				place->ranks.local_rank, place->name);
		if (waited > NOTE_SECONDS && !noted) {
			log_note("rank %d waits for rank 0 of this machine", place->ranks.rank);
			noted = true;
		}
		clock_pause(0.01);
	}
	return OK;
}

void rendezvous_end(const struct place *place)
{
	char path[PATH_BYTES];
	name_path(path, place);
	if (place->ranks.local_rank == 0)
		unlink(path);
}
