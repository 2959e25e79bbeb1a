/* Encodes TensorBoard's events and appends them to a new file, whose name sorts after those already in the folder. */
#include "formats/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/owned_files.h"
#include "formats/protobuf.h"

/* Event.wall_time and Event.step, which every record has (a step of 0 is omitted, as protocol buffers do with defaults). */
static struct buffer event_begin(double wall_time, int64_t step)
{
	struct buffer event = {0};
	protobuf_double(&event, 1, wall_time);
	if (step != 0)
		protobuf_integer(&event, 2, step);
	return event;
}

/* A TFRecord: size, checksum of the size, the bytes, checksum of the bytes. */
static void put_record(struct buffer *out, struct buffer *event)
{
	uint64_t size = event->size;
	uint32_t size_crc = crc32c_masked(crc32c(0, &size, sizeof size));
	uint32_t data_crc = crc32c_masked(crc32c(0, buffer_string(event), event->size));
	out->failed |= event->failed;
	buffer_append(out, &size, sizeof size);
	buffer_append(out, &size_crc, sizeof size_crc);
	buffer_append(out, event->data, event->size);
	buffer_append(out, &data_crc, sizeof data_crc);
	buffer_release(event);
}

void event_encode_version(struct buffer *out, double wall_time)
{
	static const char version[] = "brain.Event:2";
	struct buffer event = event_begin(wall_time, 0);
	protobuf_bytes(&event, 3, version, sizeof version - 1);
	put_record(out, &event);
}

void event_encode_start(struct buffer *out, double wall_time, int64_t step)
{
	struct buffer event = event_begin(wall_time, step), log = {0};
	protobuf_integer(&log, 1, 1); /* START */
	protobuf_message(&event, 7, &log);
	put_record(out, &event);
}

/* A Summary with one value. */
static void put_summary(struct buffer *out, double wall_time, int64_t step, struct buffer *value)
{
	struct buffer event = event_begin(wall_time, step), summary = {0};
	protobuf_message(&summary, 1, value);
	protobuf_message(&event, 5, &summary);
	put_record(out, &event);
}

void event_encode_scalar(struct buffer *out, double wall_time, int64_t step, const char *tag, float value)
{
	struct buffer scalar = {0};
	protobuf_bytes(&scalar, 1, tag, strlen(tag));
	protobuf_float(&scalar, 2, value);
	put_summary(out, wall_time, step, &scalar);
}

void event_encode_text(struct buffer *out, double wall_time, int64_t step, const char *tag, const char *text)
{
	struct buffer value = {0}, tensor = {0}, metadata = {0}, plugin = {0};
	protobuf_integer(&tensor, 1, 7);   /* DT_STRING */
	protobuf_bytes(&tensor, 2, "", 0); /* no dimensions */
	protobuf_bytes(&tensor, 8, text, strlen(text));
	protobuf_bytes(&plugin, 1, "text", 4);
	protobuf_message(&metadata, 1, &plugin);
	protobuf_integer(&metadata, 4, 2); /* DATA_CLASS_TENSOR */
	protobuf_bytes(&value, 1, tag, strlen(tag));
	protobuf_message(&value, 8, &tensor);
	protobuf_message(&value, 9, &metadata);
	put_summary(out, wall_time, step, &value);
}

struct event_file {
	char path[PATH_BYTES];
	int fd; /* -1 after a failure */
	struct buffer pending;
};

static double wall_clock(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Chooses a file name that sorts after all others in the folder: readers order files by name, and the clock may have gone
 * back. */
static enum status choose_path(char path[PATH_BYTES], const char *folder)
{
	struct name_list names = {0};
	int64_t seconds = (int64_t)wall_clock();
	TRY(folder_list(folder, &names));
	for (int64_t i = 0; i < names.count; i++) {
		if (strncmp(names.names[i], EVENT_FILE_START, strlen(EVENT_FILE_START)) != 0)
			continue;
		int64_t other = strtoll(names.names[i] + strlen(EVENT_FILE_START), NULL, 10);
		if (other >= seconds && other < 9999999999)
			seconds = other + 1;
	}
	name_list_release(&names);
	char host[128] = "", name[256];
	gethostname(host, sizeof host - 1);
	snprintf(name, sizeof name, EVENT_FILE_START "%010" PRId64 ".%s.%d.0", seconds, host[0] ? host : "localhost",
		 (int)getpid());
	return path_join(path, folder, name);
}

enum status event_file_open(struct event_file **out, const char *folder, int64_t first_step)
{
	*out = NULL;
	struct event_file *file;
	TRY(memory_new(&file, 1, sizeof *file, "event file"));
	file->fd = -1;
	enum status status;
	TRY_GOTO(choose_path(file->path, folder), fail);
	file->fd = file_operations.open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
	if (file->fd < 0)
		TRY_GOTO(error_set_errno(ERR_RESOURCE, "'%s': cannot create", file->path), fail);
	TRY_GOTO(owned_files_add(folder, strrchr(file->path, '/') + 1, OWNED_UNKNOWN), fail);
	event_encode_version(&file->pending, wall_clock());
	event_encode_start(&file->pending, wall_clock(), first_step);
	TRY_GOTO(event_file_flush(file), fail);
	*out = file;
	return OK;
fail:
	event_file_close(file);
	return status;
}

void event_file_scalar(struct event_file *file, int64_t step, const char *tag, double value)
{
	event_encode_scalar(&file->pending, wall_clock(), step, tag, (float)value);
}

void event_file_text(struct event_file *file, int64_t step, const char *tag, const char *text)
{
	event_encode_text(&file->pending, wall_clock(), step, tag, text);
}

enum status event_file_flush(struct event_file *file)
{
	struct buffer *pending = &file->pending;
	enum status status = buffer_status(pending);
	size_t done = 0;
	while (status == OK && file->fd >= 0 && done < pending->size) {
		ssize_t wrote = file_operations.write(file->fd, pending->data + done, pending->size - done);
		if (wrote >= 0)
			done += (size_t)wrote;
		else if (errno != EINTR)
			status = error_set_errno(ERR_RESOURCE, "'%s': cannot write", file->path);
	}
	buffer_clear(pending);
	if (status != OK && file->fd >= 0) {
		file_operations.close(file->fd);
		file->fd = -1;
	}
	return status;
}

void event_file_close(struct event_file *file)
{
	if (!file)
		return;
	if (file->fd >= 0 && event_file_flush(file) == OK)
		file_operations.close(file->fd);
	buffer_release(&file->pending);
	free(file);
}
