/* What the tests of tasks share: a vocabulary of a few words with its tokenizer, and sets read from made-up files. */
#ifndef TESTS_TASKS_TASK_WORLD_H
#define TESTS_TASKS_TASK_WORLD_H

#include "tasks/task.h"
#include "test.h"

static struct vocab vocab;
static struct tokenizer *tokenizer;
static struct bad_records bad;
static const struct task *tested; /* the task */
static const char *tested_file;   /* the name of its files */

/* Makes the test folder, and the tokenizer of these entries. */
static inline int task_world_make(void **state, const struct task *task, const char *file, const char *const *entries,
				  int32_t count)
{
	struct tokenizer_settings settings = tokenizer_defaults(false);
	tested = task;
	tested_file = file;
	if (test_folder_make(state) != 0 || vocab_from_entries(&vocab, entries, count) != OK)
		return -1;
	return tokenizer_open(&tokenizer, &vocab, &settings) == OK ? 0 : -1;
}

static inline int task_world_drop(void **state)
{
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
	return test_folder_drop(state);
}

/* The task's state with texts of at most `most` tokens; all its own settings are open. */
static inline struct task_state open_state(int32_t most)
{
	struct task_state state = {.settings = {.tokenizer = tokenizer, .max_seq_length = most, .bad = &bad}};
	bad = (struct bad_records){0};
	assert_ok(task_state_open(&state, tested, NULL));
	return state;
}

/* Writes the text to a file, reads it as a set, and encodes the set. */
static inline enum status open_set(struct task_state *state, struct task_set *set, enum task_use use, const char *text)
{
	const char *path = test_path(tested_file);
	*set = (struct task_set){.name = "", .use = use};
	assert_ok(file_write(path, text, strlen(text)));
	TRY(tested->read(state, set, &path, 1));
	return tested->encode(state, set);
}

static inline void expect_file(const char *name, const char *text)
{
	struct buffer got = {0};
	assert_ok(file_read(test_path(name), 1 << 20, &got));
	assert_string_equal(buffer_string(&got), text);
	buffer_release(&got);
}

#endif
