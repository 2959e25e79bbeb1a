/* Converts instance files made by others to our own form. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "data/pretraining/instance_files.h"
#include "data/pretraining/rewriting.h"
#include "formats/hdf5_rows.h"

#define HDF5_MAGIC "\211HDF\r\n\032\n"
/* Elements of a dataset that are read at a time, about. */
#define SLAB_ELEMENTS ((int64_t)1 << 20)
/* Memory that the child may allocate in addition to what it starts with. */
#define CHILD_BYTES ((rlim_t)4 << 30)

enum status instance_file_format(const char *path, enum instance_format *out)
{
	char head[8] = "";
	if (static_file_is(path)) {
		*out = INSTANCE_STATIC;
		return OK;
	}
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		return error_set_errno(errno == ENOENT || errno == ENOTDIR ? ERR_USAGE : ERR_RESOURCE, "'%s'", path);
	size_t count = fread(head, 1, sizeof head, file);
	enum status status = ferror(file) ? error_set_errno(ERR_RESOURCE, "'%s': cannot read", path) : OK;
	fclose(file);
	TRY(status);
	bool hdf5 = count == sizeof head && memcmp(head, HDF5_MAGIC, sizeof head) == 0;
	*out = hdf5 ? INSTANCE_HDF5 : rewriting_is_file(path) ? INSTANCE_PAIRS : INSTANCE_TFRECORD;
	return OK;
}

enum status instance_file_fingerprint(const char *path, uint64_t *out)
{
	struct stat facts;
	if (stat(path, &facts) != 0)
		return error_set_errno(errno == ENOENT || errno == ENOTDIR ? ERR_USAGE : ERR_RESOURCE, "'%s'", path);
	int64_t numbers[] = {facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
	char *whole = realpath(path, NULL); /* the same for every name of the file */
	const char *name = whole ? whole : path;
	*out = hash64_combine(hash64(name, strlen(name)), hash64(numbers, sizeof numbers));
	free(whole);
	return OK;
}

/* The fingerprint identifies the source of the conversion, so the file must not have changed meanwhile. */
static enum status check_unchanged(const char *path, uint64_t fingerprint)
{
	uint64_t now;
	TRY(instance_file_fingerprint(path, &now));
	if (now == fingerprint)
		return OK;
	return error_hinted(error_set(ERR_STATE, "'%s' has changed while it was read", path),
			    "wait until nothing writes to it any more, then run the same command again");
}

static enum status convert_records(const char *path, const struct instance_demands *demands, struct static_writer *writer,
				   struct instance_counts *out)
{
	struct record_reader *reader;
	const struct instance *instance;
	enum status status;
	TRY(record_reader_open(&reader, path, demands));
	do {
		TRY_GOTO(record_reader_next(reader, &instance), done);
		if (instance != NULL)
			TRY_GOTO(static_writer_add(writer, instance), done);
		if (stop_requested()) {
			status = error_set(STOPPED, "stopped by %s while '%s' was converted", stop_reason(), path);
			goto done;
		}
	} while (instance != NULL);
	*out = *record_reader_counts(reader);
done:
	record_reader_close(reader);
	return status;
}

/* ---- Pairs for learning to rewrite ---- */

struct pair_target {
	const struct instance_demands *demands;
	struct static_writer *writer;
	struct instance instance;
};

static enum status add_pair(void *context, const struct rewriting_pair *pair)
{
	struct pair_target *target = context;
	const struct instance_demands *demands = target->demands;
	rewriting_join(pair, tokenizer_vocab(demands->tokenizer), demands->pair_predictions, &target->instance);
	return static_writer_add_pair(target->writer, &target->instance);
}

static enum status convert_pairs(const char *path, const struct instance_demands *demands, struct static_writer *writer,
				 struct instance_counts *out)
{
	struct pair_target target = {.demands = demands, .writer = writer};
	struct rewriting_counts counts = {0};
	enum status status;
	if (!demands->tokenizer)
		return error_hinted(
			error_set(ERR_USAGE, "'%s': a text with tabs, not a file of instances", path),
			"`bertc pretrain --input_file` and `bertc instances --pairs` read lines of label, id, text_a, text_b");
	TRY_GOTO(instance_create(&target.instance, demands->pair_length, demands->pair_length), done);
	TRY_GOTO(rewriting_read(path, !demands->skip_bad, demands->tokenizer, demands->pair_length, add_pair, &target, &counts),
		 done);
	out->instances = counts.pairs;
	out->bad = counts.malformed;
	if (counts.unfit > 0)
		log_note(
			"'%s': %lld of %lld pairs are left out, since nothing in B can be masked that is as long as A: A has one "
			"token or none, or B is not longer than A",
			path, (long long)counts.unfit, (long long)(counts.unfit + counts.pairs));
done:
	instance_release(&target.instance);
	return status;
}

/* ---- NVIDIA's HDF5, read by a separate process ---- */

enum { IDS, MASK, SEGMENTS, POSITIONS, LABELS, NEXT, DATASETS };
static const char *const dataset_names[DATASETS] = {
	"input_ids", "input_mask", "segment_ids", "masked_lm_positions", "masked_lm_ids", "next_sentence_labels",
};

struct hdf5_table {
	const char *path;
	struct hdf5_file *file;
	struct hdf5_dataset *datasets[DATASETS];
	int64_t rows, columns[DATASETS];
	int32_t *slab[DATASETS];
	int64_t slab_rows;
	struct instance instance;
};

static enum status open_datasets(struct hdf5_table *table)
{
	for (int i = 0; i < DATASETS; i++) {
		int64_t rows, columns;
		TRY(hdf5_dataset_open(&table->datasets[i], table->file, dataset_names[i], &rows, &columns));
		if (table->datasets[i] == NULL && i != NEXT)
			return error_hinted(
				error_set(ERR_DATA, "'%s': no dataset '%s'", table->path, dataset_names[i]),
				"bertc reads the HDF5 files of NVIDIA's BERT for PyTorch: input_ids, input_mask, segment_ids, "
				"masked_lm_positions, masked_lm_ids, next_sentence_labels");
		if (table->datasets[i] == NULL)
			continue;
		table->rows = i == 0 ? rows : table->rows;
		table->columns[i] = columns;
		int like = i < POSITIONS ? IDS : i < NEXT ? POSITIONS : NEXT;
		if (rows != table->rows || columns != table->columns[like] || (i == NEXT && columns != 1))
			return error_set(ERR_DATA, "'%s': dataset '%s' has %lld x %lld numbers, not %lld x %lld as '%s'",
					 table->path, dataset_names[i], (long long)rows, (long long)columns,
					 (long long)table->rows, (long long)table->columns[like], dataset_names[like]);
	}
	if (table->columns[IDS] < 1 || table->columns[IDS] > STATIC_LENGTH_MAX || table->columns[POSITIONS] > table->columns[IDS])
		return error_set(ERR_DATA, "'%s': rows of %lld tokens and %lld masked positions are impossible", table->path,
				 (long long)table->columns[IDS], (long long)table->columns[POSITIONS]);
	table->slab_rows = SLAB_ELEMENTS / table->columns[IDS] + 1;
	for (int i = 0; i < DATASETS; i++)
		if (table->datasets[i] != NULL)
			TRY(memory_new(&table->slab[i], table->slab_rows * table->columns[i], sizeof(int32_t), "rows of HDF5"));
	return instance_create(&table->instance, table->columns[IDS], table->columns[POSITIONS]);
}

/* What the child reports to its parent when it is done. */
struct child_result {
	struct error error; /* status OK: nothing failed */
	struct instance_counts counts;
	struct error first_bad; /* of the skipped rows */
};

static enum status add_row(struct hdf5_table *table, int64_t row, int64_t within, const struct instance_demands *demands,
			   struct static_writer *writer, struct child_result *result)
{
	int64_t length = table->columns[IDS], predictions = table->columns[POSITIONS];
	struct padded_row padded = {
		.length = length,
		.predictions = predictions,
		.ids = table->slab[IDS] + within * length,
		.mask = table->slab[MASK] + within * length,
		.segments = table->slab[SEGMENTS] + within * length,
		.positions = table->slab[POSITIONS] + within * predictions,
		.labels = table->slab[LABELS] + within * predictions,
		.next_label = table->slab[NEXT] != NULL ? table->slab[NEXT][within] : -1,
	};
	if (instance_from_row(&padded, demands, &table->instance) == OK) {
		result->counts.instances++;
		return static_writer_add(writer, &table->instance);
	}
	struct error reason = *error_last();
	enum status status = error_set(ERR_DATA, "'%s': row %lld: %.900s", table->path, (long long)row, reason.message);
	error_hint("the file was made with another vocabulary or by another program, or is damaged; --on_bad_record skip leaves "
		   "such rows out");
	if (!demands->skip_bad)
		return status;
	if (result->counts.bad++ == 0)
		result->first_bad = *error_last();
	return OK;
}

/* Estimates from what has been written whether the rest will fit on the disk, so as not to fill it only to find out. */
static enum status check_room(const struct hdf5_table *table, int64_t done, const struct static_writer *writer,
			      const char *static_path)
{
	double rest = (double)static_writer_bytes(writer) / (double)done * (double)(table->rows - done);
	int64_t available = folder_free_bytes(static_path);
	char need[FORMAT_BYTES], have[FORMAT_BYTES];
	if (available < 0 || rest <= (double)available)
		return OK;
	return error_hinted(
		error_set(ERR_RESOURCE, "'%s': its instances need another %s, the disk has %s left", table->path,
			  format_size(need, rest), format_size(have, (double)available)),
		"free some space, or use a larger disk: with --out, or with the variable TMPDIR if the command writes "
		"nothing");
}

static enum status convert_rows(struct hdf5_table *table, const struct instance_demands *demands, struct static_writer *writer,
				const char *static_path, struct child_result *result)
{
	for (int64_t first = 0; first < table->rows; first += table->slab_rows) {
		int64_t count = table->rows - first < table->slab_rows ? table->rows - first : table->slab_rows;
		for (int i = 0; i < DATASETS; i++)
			if (table->datasets[i] != NULL)
				TRY(hdf5_read(table->datasets[i], first, count, table->slab[i]));
		for (int64_t i = 0; i < count; i++)
			TRY(add_row(table, first + i, i, demands, writer, result));
		TRY(check_room(table, first + count, writer, static_path));
	}
	return OK;
}

/* The whole conversion, as the child runs it. */
static enum status convert_hdf5(const char *path, const struct instance_demands *demands, const char *static_path,
				uint64_t fingerprint, struct child_result *result)
{
	struct hdf5_table table = {.path = path};
	struct static_writer *writer = NULL;
	enum status status;
	TRY_GOTO(hdf5_open(&table.file, path), done);
	TRY_GOTO(open_datasets(&table), done);
	TRY_GOTO(static_writer_open(&writer, static_path), done);
	TRY_GOTO(convert_rows(&table, demands, writer, static_path, result), done);
	TRY_GOTO(check_unchanged(path, fingerprint), done);
	status = static_writer_commit(writer, fingerprint);
	writer = NULL;
done:
	static_writer_abandon(writer);
	for (int i = 0; i < DATASETS; i++)
		free(table.slab[i]);
	instance_release(&table.instance);
	hdf5_close(table.file);
	return status;
}

/* A damaged file must not exhaust the machine's memory. Not under sanitizers, which reserve too much for a limit. */
static void limit_child(void)
{
	struct rlimit no_core = {0, 0};
	setrlimit(RLIMIT_CORE, &no_core);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	unsigned long pages[6] = {0};
	FILE *file = fopen("/proc/self/statm", "r");
	if (file == NULL)
		return;
	int found = fscanf(file, "%lu %lu %lu %lu %lu %lu", &pages[0], &pages[1], &pages[2], &pages[3], &pages[4], &pages[5]);
	fclose(file);
	rlim_t bytes = (rlim_t)pages[5] * (rlim_t)sysconf(_SC_PAGESIZE) + CHILD_BYTES;
	struct rlimit data = {bytes, bytes};
	if (found == 6)
		setrlimit(RLIMIT_DATA, &data);
#endif
}

_Noreturn static void run_child(int output, const char *path, const struct instance_demands *demands, const char *static_path,
				uint64_t fingerprint)
{
	static struct child_result result;
	limit_child();
	if (convert_hdf5(path, demands, static_path, fingerprint, &result) != OK)
		result.error = *error_last();
	const char *next = (const char *)&result;
	for (size_t left = sizeof result; left > 0;) {
		ssize_t written = write(output, next, left);
		if (written < 0 && errno != EINTR)
			_exit(1);
		next += written > 0 ? written : 0;
		left -= written > 0 ? (size_t)written : 0;
	}
	_exit(0);
}

/* Waits for the child's result; kills the child on a request to stop. True if the whole result was received. */
static bool receive(int input, pid_t child, struct child_result *result)
{
	char *next = (char *)result;
	size_t left = sizeof *result;
	while (left > 0) {
		struct pollfd ready = {.fd = input, .events = POLLIN};
		if (poll(&ready, 1, 200) <= 0) {
			if (stop_requested())
				kill(child, SIGKILL);
			continue;
		}
		ssize_t count = read(input, next, left);
		if (count == 0 || (count < 0 && errno != EINTR))
			return false;
		next += count > 0 ? count : 0;
		left -= count > 0 ? (size_t)count : 0;
	}
	return true;
}

/* A killed child leaves its unfinished file under a temporary name that contains its process id. */
static void remove_leftovers(const char *static_path, pid_t child)
{
	char folder[PATH_BYTES], name[PATH_BYTES], mark[32];
	struct name_list names = {0};
	path_folder(folder, static_path);
	snprintf(mark, sizeof mark, ".tmp-%ld-", (long)child);
	if (folder_list(folder, &names) == OK)
		for (int64_t i = 0; i < names.count; i++)
			if (strstr(names.names[i], mark) != NULL && path_join(name, folder, names.names[i]) == OK)
				file_operations.unlink(name);
	name_list_release(&names);
}

static enum status convert_in_child(const char *path, const struct instance_demands *demands, const char *static_path,
				    uint64_t fingerprint, struct instance_counts *out)
{
	int ends[2], wait_status = 0;
	struct child_result *result;
	TRY(hdf5_require());
	TRY(memory_new(&result, 1, sizeof *result, "result of a conversion"));
	if (pipe(ends) != 0) {
		free(result);
		return error_set_errno(ERR_RESOURCE, "cannot make a pipe");
	}
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		run_child(ends[1], path, demands, static_path, fingerprint);
	}
	int cause = errno;
	close(ends[1]);
	enum status status = OK;
	if (child < 0) {
		errno = cause;
		status = error_set_errno(ERR_RESOURCE, "cannot start the process that reads '%s'", path);
	} else {
		bool received = receive(ends[0], child, result);
		while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR)
			;
		if (!received)
			remove_leftovers(static_path, child);
		if (!received && stop_requested())
			status = error_set(STOPPED, "stopped by %s while '%s' was converted", stop_reason(), path);
		else if (!received) {
			status = error_set(ERR_DATA, "'%s': the process that read it died%s%s", path,
					   WIFSIGNALED(wait_status) ? " of " : "",
					   WIFSIGNALED(wait_status) ? strsignal(WTERMSIG(wait_status)) : "");
			error_hint("the file is damaged in a way that makes HDF5's library crash: get it again");
		} else if (result->error.status != OK)
			status = error_restore(&result->error);
		*out = result->counts;
		if (status == OK && result->counts.bad > 0)
			log_warning("%s; skipped", result->first_bad.message);
	}
	close(ends[0]);
	free(result);
	return status;
}

enum status instance_file_convert(const char *path, const struct instance_demands *demands, const char *static_path,
				  struct instance_counts *out)
{
	enum instance_format format;
	uint64_t fingerprint;
	struct static_writer *writer;
	*out = (struct instance_counts){0};
	TRY(instance_file_format(path, &format));
	TRY(instance_file_fingerprint(path, &fingerprint));
	if (format == INSTANCE_HDF5)
		return convert_in_child(path, demands, static_path, fingerprint, out);
	BUG_IF(format == INSTANCE_STATIC);
	TRY(static_writer_open(&writer, static_path));
	enum status status = format == INSTANCE_PAIRS ? convert_pairs(path, demands, writer, out)
						      : convert_records(path, demands, writer, out);
	if (status == OK)
		status = check_unchanged(path, fingerprint);
	if (status != OK) {
		static_writer_abandon(writer);
		return status;
	}
	return static_writer_commit(writer, fingerprint);
}
