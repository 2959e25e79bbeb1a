/* Checkpoints: any flipped bit is found, and the previous checkpoint is used; a failure while saving costs no older
 * checkpoint; what is saved is the weights at that moment, however slow the disk is. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/log.h"
#include "base/rng.h"
#include "train/checkpoint_internal.h"
#include "train/loop_world.h"
#include "weights/manifest.h"

static struct world w;

/* A finished run of four steps with checkpoints 2 and 4. */
static void make_run(const char *name)
{
	world_open(&w, name, 4, 2);
	assert_ok(train(&w.training));
	world_close(&w);
}

static void flip(const char *path, int64_t bit)
{
	unsigned char byte;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, bit / 8), 1);
	byte ^= (unsigned char)(1 << bit % 8);
	assert_int_equal(pwrite(fd, &byte, 1, bit / 8), 1);
	close(fd);
}

static void assert_damaged(const char *folder, const char *file, int64_t at)
{
	if (checkpoint_verify(folder) != ERR_DATA)
		fail_msg("'%s': damage at %lld went unnoticed", file, (long long)at);
	assert_non_null(strstr(error_last()->message, "damaged"));
}

static void every_bit_counts(void **state)
{
	const char *folder = test_path("bits/checkpoint-4");
	char checkpoint[PATH_BYTES], path[PATH_BYTES];
	struct name_list files;
	int64_t tried = 0;
	make_run("bits");
	snprintf(checkpoint, sizeof checkpoint, "%s", folder);
	assert_ok(checkpoint_verify(checkpoint));
	assert_ok(folder_list(checkpoint, &files));
	assert_true(files.count >= 9);
	struct rng rng = rng_start(5, RNG_TEST, 0);
	for (int64_t i = 0; i < files.count; i++) {
		assert_ok(path_join(path, checkpoint, files.names[i]));
		int64_t bits = 8 * file_size(path), some = 400;
		/* Everything else is checked against the manifest: each of its bits. */
		bool all = strcmp(files.names[i], MANIFEST_NAME) == 0;
		for (int64_t k = 0; k < (all ? bits : some); k++) {
			int64_t bit = all ? k : k < 100 ? k : (int64_t)rng_below(&rng, (uint32_t)bits);
			flip(path, bit);
			assert_damaged(checkpoint, path, bit);
			flip(path, bit);
			tried++;
		}
	}
	assert_ok(checkpoint_verify(checkpoint));
	print_message("%lld flipped bits\n", (long long)tried);
	name_list_release(&files);
}

static void every_length_counts(void **state)
{
	char checkpoint[PATH_BYTES], path[PATH_BYTES];
	struct name_list files;
	int64_t tried = 0;
	make_run("lengths");
	snprintf(checkpoint, sizeof checkpoint, "%s", test_path("lengths/checkpoint-4"));
	assert_ok(folder_list(checkpoint, &files));
	struct rng rng = rng_start(6, RNG_TEST, 0);
	for (int64_t i = 0; i < files.count; i++) {
		struct buffer bytes = {0};
		assert_ok(path_join(path, checkpoint, files.names[i]));
		assert_ok(file_read(path, 1 << 24, &bytes));
		int64_t size = (int64_t)bytes.size, lengths[64] = {0, 1, 7, 8, 9, size - 1, size / 2, size + 1, size + 512};
		int count = 9;
		while (count < 40)
			lengths[count++] = (int64_t)rng_below(&rng, (uint32_t)size);
		for (int k = 0; k < count; k++) {
			if (lengths[k] == size || lengths[k] < 0)
				continue;
			assert_int_equal(truncate(path, lengths[k]), 0);
			assert_damaged(checkpoint, path, lengths[k]);
			int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
			assert_int_equal(write(fd, bytes.data, bytes.size), size);
			close(fd);
			tried++;
		}
		/* Missing, a folder, a pipe that nobody writes to, a circular link. */
		assert_int_equal(unlink(path), 0);
		assert_damaged(checkpoint, path, -1);
		assert_int_equal(mkdir(path, 0777), 0);
		assert_damaged(checkpoint, path, -2);
		assert_int_equal(rmdir(path), 0);
		assert_int_equal(mkfifo(path, 0666), 0);
		assert_damaged(checkpoint, path, -3);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(symlink(files.names[i], path), 0);
		assert_damaged(checkpoint, path, -4);
		assert_int_equal(unlink(path), 0);
		assert_ok(file_write(path, bytes.data, bytes.size));
		buffer_release(&bytes);
	}
	assert_ok(checkpoint_verify(checkpoint));
	print_message("%lld other lengths\n", (long long)tried);
	name_list_release(&files);
}

/* Whichever file is damaged: the run resumes from the previous checkpoint, says so, and ends where it did. */
static void the_older_one_is_taken(void **state)
{
	char path[PATH_BYTES], log[PATH_BYTES];
	struct name_list files;
	make_run("older");
	assert_ok(folder_list(test_path("older/checkpoint-4"), &files));
	snprintf(log, sizeof log, "%s", test_path("log"));
	log_to_file(log);
	for (int64_t i = 0; i < files.count; i++) {
		struct buffer before = {0}, after = {0}, said = {0};
		assert_ok(file_read(test_path("older/checkpoint-4/optimizer.safetensors"), 1 << 24, &before));
		assert_ok(path_join(path, test_path("older/checkpoint-4"), files.names[i]));
		flip(path, 4 * file_size(path));
		world_open(&w, "older", 4, 2);
		world_resume(&w);
		assert_int_equal(w.training.state.step, 2);
		assert_ok(train(&w.training));
		world_close(&w);
		assert_ok(checkpoint_verify(test_path("older/checkpoint-4")));
		assert_ok(file_read(test_path("older/checkpoint-4/optimizer.safetensors"), 1 << 24, &after));
		assert_int_equal(before.size, after.size);
		assert_memory_equal(before.data, after.data, after.size);
		assert_ok(file_read(log, 1 << 24, &said));
		assert_non_null(strstr(buffer_string(&said), "skipped"));
		buffer_release(&before);
		buffer_release(&after);
		buffer_release(&said);
	}
	log_to_file(NULL);
	/* None is sound: the run must not silently start over. */
	bool found;
	flip(test_path("older/checkpoint-2/model.safetensors"), 999);
	flip(test_path("older/checkpoint-4/model.safetensors"), 999);
	assert_error(ERR_DATA, "none of its 2 checkpoints is intact", checkpoint_latest(test_path("older"), path, &found));
	assert_non_null(strstr(error_last()->hint, "--fresh"));
	name_list_release(&files);
}

/* Trains the folder to step 4 from its newest checkpoint, saving each step and keeping all checkpoints. */
static enum status go_on(const char *name)
{
	world_open(&w, name, 4, 1);
	w.training.checkpoints.keep = 0;
	world_resume(&w);
	enum status status = train(&w.training);
	struct error error = *error_last();
	world_close(&w);
	return status == OK ? OK : error_restore(&error);
}

static void back_to_step_2(const char *name)
{
	for (int step = 3; step <= 4; step++) {
		char path[PATH_BYTES];
		snprintf(path, sizeof path, "%s/%s/checkpoint-%d", test_folder, name, step);
		assert_ok(folder_remove(path));
	}
	assert_ok(checkpoint_verify(test_path("faults/checkpoint-2")));
}

static void assert_same_bytes(const char *a, const char *b)
{
	struct buffer left = {0}, right = {0};
	assert_ok(file_read(a, 1 << 24, &left));
	assert_ok(file_read(b, 1 << 24, &right));
	if (left.size != right.size || memcmp(left.data, right.data, left.size) != 0)
		fail_msg("'%s' and '%s' differ", a, b);
	buffer_release(&left);
	buffer_release(&right);
}

static void assert_ends_as_it_should(const char *name)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s/checkpoint-4/model.safetensors", test_folder, name);
	assert_same_bytes(path, test_path("straight/checkpoint-4/model.safetensors"));
	snprintf(path, sizeof path, "%s/%s/checkpoint-4/optimizer.safetensors", test_folder, name);
	assert_same_bytes(path, test_path("straight/checkpoint-4/optimizer.safetensors"));
}

static void set_up_faults(void)
{
	if (file_exists(test_path("straight")))
		return;
	make_run("straight");
	world_open(&w, "faults", 4, 1);
	w.training.checkpoints.keep = 0;
	w.training.settings.stop_at_step = 2;
	assert_int_equal(train(&w.training), STOPPED);
	world_close(&w);
}

static const char *const operations[] = {"open", "write", "fsync", "close", "rename", "unlink", "mkdir"};

/* Every write call of two saves and of the log fails once, and then permanently: an error that says so, the checkpoint of
 * step 2 is untouched, and the next start ends with the right weights. */
static void no_fault_costs_a_checkpoint(void **state)
{
	static const char *const modes[] = {":ENOSPC", "+:ENOSPC", "+:EROFS", ":EIO", ":short", ":EINTR"};
	int faults = 0, errors = 0;
	set_up_faults();
	for (size_t o = 0; o < sizeof operations / sizeof *operations; o++) {
		for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
			bool hit = true;
			for (int k = 1; hit; k++) {
				char fault[48];
				snprintf(fault, sizeof fault, "%s:%d%s", operations[o], k, modes[m]);
				world_open(&w, "faults", 4, 1);
				w.training.checkpoints.keep = 0;
				world_resume(&w);
				assert_int_equal(w.training.state.step, 2);
				assert_ok(file_fault_set(fault));
				enum status status = train(&w.training);
				if (status != OK && status != ERR_RESOURCE)
					fail_msg("%s: status %d, '%s'", fault, status, error_last()->message);
				hit = file_fault_hit();
				errors += status != OK;
				assert_ok(file_fault_set(NULL));
				world_close(&w);
				assert_ok(checkpoint_verify(test_path("faults/checkpoint-2")));
				if (!hit)
					assert_int_equal(status, OK);
				faults += hit;
				assert_ok(go_on("faults"));
				assert_ends_as_it_should("faults");
				back_to_step_2("faults");
			}
		}
	}
	print_message("%d faults, of which %d ended the run\n", faults, errors);
	assert_true(errors > 300);
}

/* The same with a kill at every call. */
static void no_kill_costs_a_checkpoint(void **state)
{
	int kills = 0;
	set_up_faults();
	for (size_t o = 0; o < sizeof operations / sizeof *operations; o++) {
		for (int k = 1;; k++) {
			char fault[48];
			snprintf(fault, sizeof fault, "%s:%d:kill", operations[o], k);
			pid_t child = fork();
			if (child == 0) {
				world_open(&w, "faults", 4, 1);
				w.training.checkpoints.keep = 0;
				world_resume(&w);
				if (file_fault_set(fault) != OK || train(&w.training) != OK)
					_exit(1);
				_exit(0);
			}
			int result;
			waitpid(child, &result, 0);
			bool killed = WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL;
			if (!killed)
				assert_int_equal(result, 0);
			kills += killed;
			assert_ok(checkpoint_verify(test_path("faults/checkpoint-2")));
			assert_ok(go_on("faults"));
			assert_ends_as_it_should("faults");
			back_to_step_2("faults");
			if (!killed)
				break;
		}
	}
	print_message("%d kills\n", kills);
	assert_true(kills > 100);
}

/* ---- A slow disk, a folder that disappears ---- */

static struct file_operations usual;
static _Atomic(const char *) awaited; /* read by the thread that saves */

static int slow_open(const char *path, int flags, mode_t mode)
{
	if (strstr(path, ".tmp-checkpoint-"))
		usleep(20000);
	return usual.open(path, flags, mode);
}

static int moving_open(const char *path, int flags, mode_t mode)
{
	const char *part = awaited;
	if (part && strstr(path, ".tmp-checkpoint-") && strstr(path, part)) {
		awaited = NULL;
		if (rename(test_path("lost"), test_path("elsewhere")) != 0)
			return -1;
	}
	return usual.open(path, flags, mode);
}

/* Ten steps pass while a checkpoint is written: it holds the state of its own step. */
static void saves_what_was(void **state)
{
	usual = file_operations;
	world_open(&w, "quick", 30, 10);
	w.training.checkpoints.keep = 0;
	assert_ok(train(&w.training));
	world_close(&w);
	file_operations.open = slow_open;
	world_open(&w, "slow", 30, 10);
	w.training.checkpoints.keep = 0;
	assert_ok(train(&w.training));
	assert_true(checkpoint_writer_bytes(w.model) > 0);
	world_close(&w);
	file_operations = usual;
	for (int step = 10; step <= 30; step += 10) {
		static const char *const files[] = {"model", "optimizer"};
		for (int i = 0; i < 2; i++) {
			char quick[128], slow[128];
			snprintf(quick, sizeof quick, "quick/checkpoint-%d/%s.safetensors", step, files[i]);
			snprintf(slow, sizeof slow, "slow/checkpoint-%d/%s.safetensors", step, files[i]);
			assert_same_bytes(test_path(quick), test_path(slow));
		}
	}
}

static void the_folder_goes_away(void **state)
{
	static const char *const moments[] = {"config.json", "model.safetensors", "optimizer", "MANIFEST"};
	usual = file_operations;
	for (int i = 0; i < 4; i++) {
		file_operations.open = moving_open;
		awaited = moments[i];
		world_open(&w, "lost", 200, 2);
		enum status status = train(&w.training);
		file_operations = usual;
		assert_int_equal(status, ERR_RESOURCE);
		assert_non_null(strstr(error_last()->message, "lost': the run's folder is gone"));
		world_close(&w);
		assert_false(file_exists(test_path("lost/checkpoint-2")));
		assert_ok(folder_remove(test_path("elsewhere")));
		assert_ok(folder_remove(test_path("lost")));
	}
}

/* ---- Numbers ---- */

static void spoil(struct world *world, struct tensor slab)
{
	double bad = NAN;
	world->be->functions->to_device(world->be, (double *)slab.data + 3, &bad, sizeof bad);
}

static void spoil_weights(struct world *world, int64_t step)
{
	if (step == 4)
		spoil(world, world->model->slab);
}

/* In a step whose update is skipped, so that no weight is affected. */
static void spoil_moments(struct world *world, int64_t step)
{
	if (step == 6)
		spoil(world, world->optimizer->v);
}

static double nan_in_step_6(int64_t step, int32_t batch, int run, double scale)
{
	(void)batch, (void)run, (void)scale;
	return step == 6 ? NAN : 1;
}

static void what_is_not_finite_is_not_saved(void **state)
{
	void (*const spoilers[])(struct world *, int64_t) = {spoil_weights, spoil_moments};
	for (int i = 0; i < 2; i++) {
		world_open(&w, i ? "moments" : "weights", 100, 3);
		w.before_step = spoilers[i];
		w.gradient = i ? nan_in_step_6 : NULL;
		assert_error(ERR_NUMERIC, i ? "second moments of" : "weights of", train(&w.training));
		assert_ok(checkpoint_verify(test_path(i ? "moments/checkpoint-3" : "weights/checkpoint-3")));
		assert_false(file_exists(test_path(i ? "moments/checkpoint-6" : "weights/checkpoint-6")));
		if (i == 0)
			assert_error(ERR_NUMERIC, "are not finite",
				     checkpoint_save_final(&w.training.checkpoints, w.model, w.training.state.step));
		assert_false(file_exists(test_path(i ? "moments/final" : "weights/final")));
		world_close(&w);
	}
}

/* ---- Records that no run writes ---- */

/* A record with everything that a record can contain. */
static const char record[] =
	"{\"format\": 1, \"step\": 5, \"samples\": 40, \"tokens\": 400, \"seconds\": 1.5, \"elapsed\": 2.5, \"loss_sum\": 30.5, "
	"\"loss_count\": 4, \"epoch\": 1, \"epoch_first_sample\": 20, \"skipped_steps\": 1, \"update_count\": 4, \"phase\": "
	"{\"index\": 1, \"first_step\": 2, \"first_sample\": 8, \"first_token\": 80, \"time_is_up\": true, \"averaged\": 3, "
	"\"evaluations\": 1, \"stalled\": 0, \"best_score\": 1}, \"evaluated_step\": 4, \"evaluated_score\": 1, \"best\": "
	"{\"step\": 3, \"score\": 2}, \"guard\": {\"skipped_in_row\": 1, \"recent\": [0, 0, 0, 0, 0, 0, 0, 0, 2, 3], "
	"\"loss_scale\": 65536, \"clean_steps\": 1, \"dynamic\": true, \"observed\": 2, \"losses\": [1, 2], \"norms\": [3, 4]}, "
	"\"data_hash\": \"00000000000000ff\", \"evaluation_hash\": \"00000000000000fe\", \"vocab_hash\": \"00000000000000fd\", "
	"\"teacher_hash\": \"00000000000000fc\"}";

/* Writes the record with its value number `target` replaced by `with`, or left out (`with` NULL). `target` is counted down
 * to -1. */
static void put_changed(struct json_writer *writer, const struct json *value, int64_t *target, const char *with,
			const char **out_key)
{
	const char *key = value->key;
	bool changed = (*target)-- == 0;
	if (changed && key)
		*out_key = key;
	if (changed && !with)
		return;
	if (changed) {
		json_put_written(writer, key, with);
	} else if (value->kind == JSON_OBJECT || value->kind == JSON_ARRAY) {
		json_open(writer, key, value->kind == JSON_OBJECT ? '{' : '[');
		for (const struct json *child = value->first_child; child; child = child->next) {
			int64_t before = *target;
			put_changed(writer, child, target, with, out_key);
			if (before >= 0 && *target < 0 && !child->key) /* an element of an array */
				*out_key = key;
		}
		json_close(writer);
	} else if (value->kind == JSON_STRING) {
		json_put_string(writer, key, value->text);
	} else if (value->kind == JSON_BOOL) {
		json_put_bool(writer, key, value->boolean);
	} else {
		json_put_written(writer, key, value->text);
	}
}

static bool is_one_of(const char *key, const char *list)
{
	char word[64];
	snprintf(word, sizeof word, " %s ", key);
	return strstr(list, word) != NULL;
}

/* Whether a valid record may contain this value. */
static bool may_be(const char *key, const char *with)
{
	if (!with)
		return is_one_of(key, " elapsed time_is_up averaged best_score evaluated_score best dynamic teacher_hash "
				      "evaluation_hash vocab_hash ");
	if (strcmp(with, "true") == 0 || strcmp(with, "false") == 0)
		return is_one_of(key, " time_is_up dynamic ");
	bool number = with[0] == '-' || (with[0] >= '0' && with[0] <= '9');
	double x = number ? strtod(with, NULL) : NAN;
	return number &&
	       (is_one_of(key, " best_score evaluated_score score losses norms ") || (is_one_of(key, " loss_scale ") && x > 0) ||
		(is_one_of(key, " loss_sum ") && fabs(x) < 1e38) || (is_one_of(key, " seconds elapsed ") && x >= 0 && x < 1e11));
}

/* Each value of the record made negative, huge, of another type, or left out. */
static void every_field_of_a_record_counts(void **state)
{
	static const char *const values[] = {"-1",
					     "1e308",
					     "-1e308",
					     "9223372036854775807",
					     "72057594037927937",
					     "0.5",
					     "1e-320",
					     "\"text\"",
					     "\"\"",
					     "null",
					     "true",
					     "false",
					     "[]",
					     "{}",
					     NULL};
	struct json_document document;
	struct train_state read;
	uint64_t hash;
	int64_t tried = 0;
	assert_ok(json_parse(&document, "record", record, strlen(record)));
	assert_ok(checkpoint_state_read(document.root, "record", &read, &hash));
	assert_true(read.best_step == 3 && read.guard.recent[9] == 3 && hash == 0xff);
	for (int64_t target = 1, left = -1; left < 0; target++) {
		for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
			struct buffer text = {0};
			struct json_writer writer = {.out = &text};
			struct json_document changed;
			const char *key = NULL;
			left = target;
			put_changed(&writer, document.root, &left, values[i], &key);
			if (left >= 0) {
				buffer_release(&text);
				break;
			}
			/* update_count is read along with the moments. */
			int64_t updates;
			assert_ok(json_parse(&changed, "record", buffer_string(&text), text.size));
			enum status status = checkpoint_state_read(changed.root, "record", &read, &hash);
			if (status == OK)
				status = checkpoint_update_count(changed.root, "record", &updates);
			bool fine = status == ERR_DATA || (status == OK && may_be(key, values[i]));
			fine |= status == ERR_STATE && is_one_of(key, " format "); /* a newer format */
			if (!fine)
				fail_msg("\"%s\" as %s: status %d", key, values[i] ? values[i] : "nothing", status);
			tried++;
			json_release(&changed);
			buffer_release(&text);
		}
	}
	json_release(&document);
	print_message("%lld changed records\n", (long long)tried);
	assert_true(tried > 800);
}

/* The disk is full while the finished model is written: nothing of it is left. */
static void an_unfinished_model_goes(void **state)
{
	world_open(&w, "unfinished", 100, 3);
	assert_ok(train(&w.training));
	for (int i = 1; i <= 3; i++) {
		char fault[32];
		snprintf(fault, sizeof fault, "write:%d:ENOSPC", i);
		assert_ok(file_fault_set(fault));
		enum status status = checkpoint_save_final(&w.training.checkpoints, w.model, w.training.state.step);
		assert_ok(file_fault_set(NULL));
		assert_int_equal(status, ERR_RESOURCE);
		assert_false(file_exists(test_path("unfinished/.tmp-final")));
		assert_false(file_exists(test_path("unfinished/final")));
	}
	assert_ok(checkpoint_save_final(&w.training.checkpoints, w.model, w.training.state.step));
	assert_true(file_exists(test_path("unfinished/final")));
	world_close(&w);
}

int main(void)
{
	log_level = LOG_QUIET;
	/* Thousands of files: in memory, if there is a folder for that. */
	if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unfinished_model_goes),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(every_length_counts),
		cmocka_unit_test(the_older_one_is_taken),
		cmocka_unit_test(no_fault_costs_a_checkpoint),
		cmocka_unit_test(no_kill_costs_a_checkpoint),
		cmocka_unit_test(saves_what_was),
		cmocka_unit_test(the_folder_goes_away),
		cmocka_unit_test(what_is_not_finite_is_not_saved),
		cmocka_unit_test(every_field_of_a_record_counts),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
