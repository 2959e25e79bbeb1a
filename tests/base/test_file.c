/* Reading within limits, mapping, and atomic writing, with every system call made to fail once. */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/hash.h"

static bool file_holds(const char *path, const void *bytes, size_t count)
{
	struct buffer text = {0};
	bool same =
		file_read(path, 64 << 20, &text) == OK && text.size == count && (count == 0 || !memcmp(text.data, bytes, count));
	buffer_release(&text);
	return same;
}

static int64_t entries_of(const char *path)
{
	struct name_list names;
	if (folder_list(path, &names) != OK)
		return -1;
	int64_t count = names.count;
	name_list_release(&names);
	return count;
}

static void reads_are_bounded(void **state)
{
	struct buffer text = {0};
	const char *path = test_path("read");
	assert_ok(file_write(path, "hello", 5));
	assert_ok(file_read(path, 5, &text));
	assert_string_equal(buffer_string(&text), "hello");
	assert_error(ERR_DATA, "larger than 4 bytes", file_read(path, 4, &text));
	assert_null(text.data);
	assert_error(ERR_USAGE, "absent': cannot open: No such", file_read(test_path("absent"), 4, &text));
	assert_error(ERR_USAGE, "Is a directory", file_read(test_folder, 4, &text));
	assert_error(ERR_USAGE, "Not a directory", file_read(test_path("read/x"), 4, &text));
	assert_error(ERR_DATA, "/dev/zero", file_read("/dev/zero", 1 << 20, &text)); /* endless, but reading stops at the limit */
	assert_ok(file_write(path, "", 0));
	assert_ok(file_read(path, 0, &text));
	assert_int_equal(text.size, 0);
	assert_int_equal(file_size(path), 0);
	assert_int_equal(file_size(test_folder), -1);
	assert_true(file_exists(path) && !file_is_folder(path) && file_is_folder(test_folder));
	assert_false(file_exists(test_path("absent")));
	buffer_release(&text);
}

/* A pipe in place of a file: without a writer, nothing waits for it; with a writer, reading waits for the data. */
static void pipes_do_not_hang(void **state)
{
	struct buffer text = {0};
	struct file_map map;
	const char *path = test_path("pipe");
	assert_int_equal(mkfifo(path, 0666), 0);
	alarm(20);
	assert_error(ERR_DATA, "nothing was written to", file_read(path, 10, &text));
	assert_ok(file_read("/dev/null", 10, &text));
	assert_int_equal(text.size, 0);
	assert_error(ERR_USAGE, "not a regular file", file_map_open(&map, path));
	pid_t child = fork();
	if (child == 0) {
		int fd = open(path, O_WRONLY);
		_exit(usleep(200000) != 0 || write(fd, "late", 4) != 4);
	}
	usleep(100000); /* meanwhile it waits for a reader */
	assert_ok(file_read(path, 10, &text));
	alarm(0);
	assert_string_equal(buffer_string(&text), "late");
	buffer_release(&text);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void maps(void **state)
{
	struct file_map map;
	assert_ok(file_write(test_path("map"), "mapped", 6));
	assert_ok(file_map_open(&map, test_path("map")));
	assert_int_equal(map.size, 6);
	assert_memory_equal(map.data, "mapped", 6);
	file_map_close(&map);
	file_map_close(&map);
	assert_ok(file_write(test_path("map"), "", 0));
	assert_ok(file_map_open(&map, test_path("map")));
	assert_null(map.data);
	assert_error(ERR_USAGE, "regular", file_map_open(&map, "/dev/null"));
	assert_error(ERR_USAGE, "absent", file_map_open(&map, test_path("absent")));
}

/* The resident pages of this process. */
static long resident_pages(void)
{
	long total = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &total, &resident), 2);
	fclose(file);
	return resident;
}

static int64_t sum_of(const struct file_map *map)
{
	int64_t sum = 0;
	for (size_t i = 0; i < map->size; i++)
		sum += map->data[i];
	return sum;
}

static void dropped_pages_of_a_map_are_read_again(void **state)
{
	enum { PAGES = 2000 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = PAGES * page + 100;
	struct file_map map;
	unsigned char *content = malloc(bytes);
	assert_non_null(content);
	for (size_t i = 0; i < bytes; i++)
		content[i] = (unsigned char)(i * 31 + i / page);
	assert_ok(file_write(test_path("large_map"), content, bytes));
	free(content);
	assert_ok(file_map_open(&map, test_path("large_map")));
	int64_t sum = sum_of(&map);
	long before = resident_pages();
	file_map_drop(&map, map.data + 1, bytes - 2);
	assert_true(before - resident_pages() > PAGES / 2);
	assert_int_equal(sum_of(&map), sum);
	file_map_drop(&map, map.data + bytes - 10, 10);  /* less than a page: nothing to drop */
	file_map_drop(&map, map.data + page, 2 * bytes); /* not part of this map */
	assert_int_equal(sum_of(&map), sum);
	file_map_close(&map);
}

static void writer_buffers_and_counts(void **state)
{
	enum { SIZE = 3000000 };
	unsigned char *bytes = malloc(SIZE);
	for (int i = 0; i < SIZE; i++)
		bytes[i] = (unsigned char)(i * 7 + i / 251);
	const char *path = test_path("large");
	struct file_writer *writer;
	assert_ok(file_writer_open(&writer, path));
	static const size_t pieces[] = {1, 0, 100000, 262144, 262143, 5, 1000000};
	size_t done = 0;
	for (int i = 0; done < SIZE; i++) {
		size_t piece = pieces[i % 7] < SIZE - done ? pieces[i % 7] : SIZE - done;
		assert_ok(file_writer_write(writer, bytes + done, piece));
		done += piece;
		assert_int_equal(file_writer_offset(writer), done);
	}
	assert_int_equal(file_writer_crc32c(writer), crc32c(0, bytes, SIZE));
	assert_false(file_exists(path)); /* nothing is visible before it is complete */
	assert_ok(file_writer_commit(writer));
	assert_true(file_holds(path, bytes, SIZE));

	assert_ok(file_writer_open(&writer, path));
	assert_ok(file_writer_write(writer, "new", 3));
	file_writer_abandon(writer);
	file_writer_abandon(NULL);
	assert_true(file_holds(path, bytes, SIZE));
	free(bytes);
}

static void targets_of_all_kinds(void **state)
{
	struct file_writer *writer;
	struct stat facts;
	/* A link keeps pointing at its file; a device stays a device. */
	assert_ok(file_write(test_path("real"), "old", 3));
	assert_int_equal(symlink("real", test_path("link")), 0);
	assert_ok(file_write(test_path("link"), "new", 3));
	assert_true(file_holds(test_path("real"), "new", 3));
	assert_int_equal(lstat(test_path("link"), &facts), 0);
	assert_true(S_ISLNK(facts.st_mode));
	assert_int_equal(symlink("to_come", test_path("early")), 0);
	assert_ok(file_write(test_path("early"), "new", 3));
	assert_true(file_holds(test_path("to_come"), "new", 3));
	assert_int_equal(symlink("circle", test_path("circle")), 0);
	assert_error(ERR_USAGE, "too many symbolic links", file_writer_open(&writer, test_path("circle")));
	assert_ok(file_write("/dev/null", "gone", 4));
	assert_int_equal(lstat("/dev/null", &facts), 0);
	assert_true(S_ISCHR(facts.st_mode));

	assert_error(ERR_USAGE, "is a folder", file_writer_open(&writer, test_folder));
	assert_error(ERR_USAGE, "cannot create: No such", file_writer_open(&writer, test_path("absent/x")));
	assert_error(ERR_USAGE, "cannot create: Not a dir", file_writer_open(&writer, test_path("real/x")));
	char longest[PATH_BYTES + 10];
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_error(ERR_USAGE, "too long", file_writer_open(&writer, longest));
	assert_ok(file_write(test_path("name with spaces\nand more é"), "x", 1));
	assert_true(file_holds(test_path("name with spaces\nand more é"), "x", 1));
}

static void full_disk_says_how_much(void **state)
{
	assert_error(ERR_RESOURCE, "'/dev/full': cannot write 5 bytes (", file_write("/dev/full", "12345", 5));
	assert_non_null(strstr(error_last()->message, "No space left"));
	assert_non_null(strstr(error_last()->hint, "free some space"));
}

/* Records the calls of an atomic write, such as "open write fsync close rename open fsync close", with a table of
 * operations that passes them on. */
static struct file_operations real;
static char calls[256];

static int record(const char *name, int result)
{
	strcat(strcat(calls, name), " ");
	return result;
}

static int record_open(const char *path, int flags, mode_t mode)
{
	return record(flags & O_DIRECTORY ? "folder" : "open", real.open(path, flags, mode));
}

static ssize_t record_write(int fd, const void *bytes, size_t count)
{
	return record("write", (int)real.write(fd, bytes, count));
}

static int record_fsync(int fd)
{
	return record("fsync", real.fsync(fd));
}

static int record_close(int fd)
{
	return record("close", real.close(fd));
}

static int record_rename(const char *from, const char *to)
{
	return record("rename", real.rename(from, to));
}

/* What a power failure leaves depends on this order: data before the name, the name before "done". */
static void bytes_are_durable_before_the_name(void **state)
{
	real = file_operations;
	file_operations.open = record_open;
	file_operations.write = record_write;
	file_operations.fsync = record_fsync;
	file_operations.close = record_close;
	file_operations.rename = record_rename;
	enum status status = file_write(test_path("durable"), "x", 1);
	file_operations = real;
	assert_int_equal(status, OK);
	assert_string_equal(calls, "open write fsync close rename folder fsync close ");
}

static int fail_fsync(int fd)
{
	(void)fd;
	errno = EIO;
	return -1;
}

static int fail_rename(const char *from, const char *to)
{
	(void)from;
	(void)to;
	errno = EACCES;
	return -1;
}

static void a_failed_commit_leaves_what_can_be_resumed(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct file_writer *writer;
		struct file_writer_state written = {0};
		assert_ok(file_writer_resume(&writer, test_path("long"), written));
		assert_ok(file_writer_write(writer, "abc", 3));
		assert_ok(file_writer_save(writer, &written));
		real = file_operations;
		if (i == 0)
			file_operations.fsync = fail_fsync;
		else
			file_operations.rename = fail_rename;
		enum status status = file_writer_commit(writer);
		file_operations = real;
		assert_int_equal(status, ERR_RESOURCE);
		assert_true(file_holds(test_path("long.part"), "abc", 3));
		assert_ok(file_writer_resume(&writer, test_path("long"), written));
		assert_ok(file_writer_write(writer, "d", 1));
		assert_ok(file_writer_commit(writer));
		assert_true(file_holds(test_path("long"), "abcd", 4));
		assert_false(file_exists(test_path("long.part")));
	}
}

/* A saved part whose bytes are not what was written. */
static void a_changed_part_is_not_gone_on_with(void **state)
{
	struct file_writer *writer;
	struct file_writer_state written;
	assert_ok(file_writer_resume(&writer, test_path("changed"), (struct file_writer_state){0}));
	assert_ok(file_writer_write(writer, "abcdef", 6));
	assert_ok(file_writer_save(writer, &written));
	file_writer_suspend(writer);
	assert_ok(file_write(test_path("changed.part"), "abcdXf and more", 15));
	assert_error(ERR_DATA, "has changed since it was written", file_writer_resume(&writer, test_path("changed"), written));
	assert_ok(file_write(test_path("changed.part"), "abcdef and more", 15));
	assert_ok(file_writer_resume(&writer, test_path("changed"), written));
	/* Bytes overwritten in the middle have no known checksum and are accepted as they are. */
	assert_ok(file_writer_patch(writer, 0, "A", 1));
	assert_ok(file_writer_save(writer, &written));
	file_writer_suspend(writer);
	assert_ok(file_writer_resume(&writer, test_path("changed"), written));
	assert_ok(file_writer_commit(writer));
	assert_true(file_holds(test_path("changed"), "Abcdef", 6));
}

/* Temporary names that already exist, such as links that lead elsewhere, are left alone. */
static void temporary_names_are_new(void **state)
{
	assert_ok(file_write(test_path("victim"), "safe", 4));
	for (int i = 0; i < 2000; i++) {
		char name[64];
		snprintf(name, sizeof name, ".taken.tmp-%ld-%d", (long)getpid(), i);
		assert_int_equal(symlink("victim", test_path(name)), 0);
	}
	assert_ok(file_write(test_path("taken"), "new", 3));
	assert_true(file_holds(test_path("taken"), "new", 3));
	assert_true(file_holds(test_path("victim"), "safe", 4));
}

/* Every operation of an atomic write fails at every call in turn, once and then permanently: either the old file or the
 * new one is complete, the failure is reported, and nothing else is left behind. */
static void faults_never_damage(void **state)
{
	static const char *const operations[] = {"open", "write", "fsync", "close", "rename", "unlink"};
	static const char *const modes[] = {"ENOSPC", "EIO", "EINTR", "short"};
	enum { SIZE = 700000 };
	char *old = malloc(SIZE), *new = malloc(SIZE);
	memset(old, 'o', SIZE);
	memset(new, 'n', SIZE);
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s", test_path("faults/file"));
	assert_ok(folder_make(test_path("faults")));
	int runs = 0;
	for (int o = 0; o < 6; o++) {
		for (int m = 0; m < 4; m++) {
			for (int repeated = 0; repeated < 2; repeated++) {
				if (repeated && !strcmp(modes[m], "EINTR"))
					continue; /* permanently interrupted calls would be retried forever */
				for (int call = 1;; call++) {
					char fault[64];
					assert_ok(file_fault_set(NULL));
					assert_ok(file_write(path, old, SIZE));
					snprintf(fault, sizeof fault, "%s:%d%s:%s", operations[o], call, repeated ? "+" : "",
						 modes[m]);
					assert_ok(file_fault_set(fault));
					struct file_writer *writer;
					enum status status = file_writer_open(&writer, path);
					if (status == OK) {
						/* In pieces, so that there are several writes. */
						for (int k = 0; k < 7 && status == OK; k++)
							status = file_writer_write(writer, new + k * 100000, 100000);
						if (status == OK)
							status = file_writer_commit(writer);
						else
							file_writer_abandon(writer);
					}
					bool hit = file_fault_hit();
					assert_ok(file_fault_set(NULL));
					bool is_new = file_holds(path, new, SIZE);
					assert_true(is_new || file_holds(path, old, SIZE));
					/* EINTR and short writes are recovered from; the second close is that of the
					 * folder, which was only read. */
					bool harmless = m >= 2 || (!strcmp(operations[o], "close") && call > 1);
					if (harmless || !hit)
						assert_true(status == OK && is_new);
					else if (strcmp(operations[o], "unlink") != 0)
						assert_int_equal(status, ERR_RESOURCE);
					assert_int_equal(entries_of(test_path("faults")), 1);
					runs++;
					if (!hit)
						break;
				}
			}
		}
	}
	assert_true(runs > 60);
	free(old);
	free(new);
}

/* A process killed at any call: either the old file or the new one is complete, and the next write works. */
static void kills_never_damage(void **state)
{
	static const char *const operations[] = {"open", "write", "fsync", "close", "rename"};
	enum { SIZE = 600000 };
	char *old = malloc(SIZE), *new = malloc(SIZE);
	memset(old, 'o', SIZE);
	memset(new, 'n', SIZE);
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s", test_path("kills/file"));
	assert_ok(folder_make(test_path("kills")));
	int kills = 0;
	for (int o = 0; o < 5; o++) {
		for (int call = 1;; call++) {
			assert_ok(file_write(path, old, SIZE));
			pid_t child = fork();
			if (child == 0) {
				char fault[64];
				snprintf(fault, sizeof fault, "%s:%d:kill", operations[o], call);
				_exit(file_fault_set(fault) == OK ? (int)file_write(path, new, SIZE) : 99);
			}
			int result;
			assert_int_equal(waitpid(child, &result, 0), child);
			bool is_new = file_holds(path, new, SIZE);
			assert_true(is_new || file_holds(path, old, SIZE));
			assert_ok(file_write(path, old, SIZE));
			if (!WIFSIGNALED(result)) {
				assert_true(WIFEXITED(result) && WEXITSTATUS(result) == OK && is_new);
				break;
			}
			kills++;
		}
	}
	assert_true(kills >= 5);
	free(old);
	free(new);
}

static void fault_specifications(void **state)
{
	static const char *const wrong[] = {"",          "write",         "write:1",      "write:0:EIO", "write:x:EIO",
					    "eat:1:EIO", "write:1:never", "write:1-:EIO", "write:1+EIO", "write:-1:EIO"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_error(ERR_USAGE, "fault", file_fault_set(wrong[i]));
	assert_ok(file_fault_set(NULL));
	assert_false(file_fault_hit());
}

static void file_size_limits_are_errors(void **state)
{
	const char *path = test_path("limited");
	assert_ok(file_write(path, "old", 3));
	pid_t child = fork();
	if (child == 0) {
		struct rlimit limit = {100000, 100000};
		char bytes[200000] = {0};
		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
			_exit(99);
		_exit(file_write(path, bytes, sizeof bytes) == ERR_RESOURCE && strstr(error_last()->message, "File too large")
			      ? 0
			      : 1);
	}
	int result;
	assert_int_equal(waitpid(child, &result, 0), child);
	assert_true(WIFEXITED(result));
	assert_int_equal(WEXITSTATUS(result), 0);
	assert_true(file_holds(path, "old", 3));
}

static void log_lines_survive_a_torn_one(void **state)
{
	const char *path = test_path("lines");
	assert_ok(file_append_line(path, "{\"step\":1}\n"));
	assert_ok(file_append_line(path, "{\"step\":2}\n"));
	assert_int_equal(truncate(path, 16), 0); /* as a crash would leave it */
	assert_ok(file_append_line(path, "{\"step\":3}\n"));
	assert_true(file_holds(path, "{\"step\":1}\n{\"ste\n{\"step\":3}\n", 28));
	assert_error(ERR_USAGE, "cannot open", file_append_line(test_path("absent/lines"), "x\n"));
	assert_error(ERR_RESOURCE, "No space", file_append_line("/dev/full", "x\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_are_bounded),
		cmocka_unit_test(pipes_do_not_hang),
		cmocka_unit_test(maps),
		cmocka_unit_test(dropped_pages_of_a_map_are_read_again),
		cmocka_unit_test(writer_buffers_and_counts),
		cmocka_unit_test(targets_of_all_kinds),
		cmocka_unit_test(full_disk_says_how_much),
		cmocka_unit_test(bytes_are_durable_before_the_name),
		cmocka_unit_test(a_failed_commit_leaves_what_can_be_resumed),
		cmocka_unit_test(a_changed_part_is_not_gone_on_with),
		cmocka_unit_test(temporary_names_are_new),
		cmocka_unit_test(faults_never_damage),
		cmocka_unit_test(kills_never_damage),
		cmocka_unit_test(fault_specifications),
		cmocka_unit_test(file_size_limits_are_errors),
		cmocka_unit_test(log_lines_survive_a_torn_one),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
