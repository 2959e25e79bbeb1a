/* Small files of examples for tasks of different shapes, made from the sentences of small_run.h, and runs on them. */
#ifndef TESTS_CMD_LABELED_FILES_H
#define TESTS_CMD_LABELED_FILES_H

#include "cmd/small_run.h"

/* The last one is only for loops over all shapes: to a run, it is a classification. */
static const char *const labeled_tasks[] = {"classification", "tagging", "squad", "multiple_choice", "rewriting", "multilabel"};
enum { LABELED_TASKS = 5, ALL_LABELED_TASKS };

struct said {
	const char *who, *does, *what;
};

static inline struct said draw_sentence(struct rng *rng)
{
	static const char *const who[] = {"the cat", "a dog", "the sailor", "nobody"};
	static const char *const does[] = {"sees", "likes", "finds", "paints"};
	static const char *const what[] = {"the house", "a river", "some bread", "the moon"};
	return (struct said){who[rng_below(rng, 4)], does[rng_below(rng, 4)], what[rng_below(rng, 4)]};
}

/* "the cat" as lines of words and tags. */
static inline void put_words(struct buffer *out, const char *words, const char *type)
{
	const char *space = strchr(words, ' ');
	int first = space ? (int)(space - words) : (int)strlen(words);
	buffer_format(out, "%.*s\tB-%s\n", first, words, type);
	if (space)
		buffer_format(out, "%s\tI-%s\n", space + 1, type);
}

/* A question about what somebody does, with a paragraph longer than a window of 24 tokens. */
static inline void put_question(struct buffer *out, struct rng *rng, int number)
{
	struct buffer context = {0};
	struct said asked = {0};
	size_t start = 0;
	for (uint32_t i = 0, chosen = rng_below(rng, 5); i < 5; i++) {
		struct said said = draw_sentence(rng);
		buffer_format(&context, "%s%s %s ", i > 0 ? " " : "", said.who, said.does);
		if (i == chosen) {
			asked = said;
			start = context.size;
		}
		buffer_format(&context, "%s.", said.what);
	}
	buffer_format(
		out,
		"%s{\"context\": \"%s\", \"qas\": [{\"id\": \"%d\", \"question\": \"%s %s\", \"answers\": [{\"text\": \"%s\", "
		"\"answer_start\": %zu}]}]}",
		number > 0 ? ", " : "", buffer_string(&context), number, asked.who, asked.does, asked.what, start);
	buffer_release(&context);
}

/* The right choice repeats the action of the context. Two to four choices. */
static inline void put_choices(struct buffer *out, struct rng *rng)
{
	struct said said = draw_sentence(rng);
	uint32_t count = 2 + rng_below(rng, 3), right = rng_below(rng, count);
	buffer_format(out, "{\"context\": \"%s %s it.\", \"choices\": [", said.who, said.does);
	for (uint32_t i = 0; i < count; i++) {
		struct said choice = draw_sentence(rng);
		while (strcmp(choice.does, said.does) == 0)
			choice = draw_sentence(rng);
		buffer_format(out, "%s\"%s %s %s.\"", i > 0 ? ", " : "", choice.who, i == right ? said.does : choice.does,
			      choice.what);
	}
	buffer_format(out, "], \"label\": %u}\n", right);
}

/* Labels: who is named with an article, and whether something is seen or found. */
static inline void put_labels(struct buffer *out, struct rng *rng)
{
	struct said said = draw_sentence(rng);
	bool article = strchr(said.who, ' ') != NULL, met = said.does[0] == 's' || said.does[0] == 'f';
	buffer_format(out, "{\"text\": \"%s %s %s.\", \"labels\": [%s%s%s]}\n", said.who, said.does, said.what,
		      article ? "\"article\"" : "", article && met ? ", " : "", met ? "\"met\"" : "");
}

/* A dialogue whose subject is named only in an earlier turn. */
static inline void put_dialogue(struct buffer *out, struct rng *rng)
{
	struct said before = draw_sentence(rng), said = draw_sentence(rng);
	buffer_format(out, "%s %s %s.\tit %s %s.\t%s %s %s.\n", before.who, before.does, before.what, said.does, said.what,
		      before.who, said.does, said.what);
}

/* A file of `count` examples of a task. */
static inline void put_labeled(const char *task, const char *name, int count, uint64_t seed)
{
	struct buffer text = {0};
	struct rng rng = rng_start(seed, RNG_TEST, 2);
	bool squad = strcmp(task, "squad") == 0;
	if (squad)
		buffer_text(&text, "{\"version\": \"1.1\", \"data\": [{\"paragraphs\": [");
	else if (strcmp(task, "classification") == 0)
		buffer_text(&text, "sentence\tlabel\n");
	for (int i = 0; i < count; i++) {
		if (squad) {
			put_question(&text, &rng, i);
		} else if (strcmp(task, "multiple_choice") == 0) {
			put_choices(&text, &rng);
		} else if (strcmp(task, "multilabel") == 0) {
			put_labels(&text, &rng);
		} else if (strcmp(task, "rewriting") == 0) {
			put_dialogue(&text, &rng);
		} else {
			struct said said = draw_sentence(&rng);
			if (strcmp(task, "classification") == 0) {
				buffer_format(&text, "%s %s %s.\t%s\n", said.who, said.does, said.what, said.does);
				continue;
			}
			put_words(&text, said.who, "WHO");
			buffer_format(&text, "%s\tO\n", said.does);
			put_words(&text, said.what, "WHAT");
			buffer_text(&text, ".\tO\n\n");
		}
	}
	if (squad)
		buffer_text(&text, "]}]}");
	assert_ok(file_write(test_path(name), text.data, text.size));
	buffer_release(&text);
}

/* Makes the files TASK.train and TASK.dev of every task, and a small pre-trained model in the folder base. */
static inline int labeled_files_make(const char *device)
{
	if (program("pretrain -q --corpus %s --model %s --out %s/base --vocab_size 80 --train_batch_size 16 --max_seq_length 32 "
		    "--num_train_steps 20 --learning_rate 1e-2 --num_warmup_steps 2 --precision fp32 --threads 1 --device %s",
		    corpus, config, test_folder, device) != 0)
		return -1;
	for (int i = 0; i < ALL_LABELED_TASKS; i++) {
		char name[64];
		snprintf(name, sizeof name, "%s.train", labeled_tasks[i]);
		put_labeled(labeled_tasks[i], name, 96, 1);
		snprintf(name, sizeof name, "%s.dev", labeled_tasks[i]);
		put_labeled(labeled_tasks[i], name, 12, 2);
	}
	return 0;
}

/* Fine-tunes base for a task into the folder TASK-NAME, six steps unless `options` say otherwise; returns the exit code. */
static inline int finetune(const char *task, const char *name, const char *options)
{
	return program(
		"finetune -q --task %s --model %s/base --train %s/%s.train --dev %s/%s.dev --out %s/%s-%s --max_seq_length 24 "
		"--train_batch_size 16 --learning_rate 2e-3 --num_train_steps 6 --log_steps 1 --eval_steps 3 "
		"--save_checkpoints_steps 0 --hidden_dropout_prob 0.1 --attention_probs_dropout_prob 0.1 --threads 1 %s",
		task, test_folder, test_folder, task, test_folder, task, test_folder, task, name, options);
}

/* The largest relative difference of a number over the first `steps` steps between the runs TASK-a and TASK-b. */
static inline double curve_distance(const char *task, const char *a, const char *b, const char *measure, int64_t steps)
{
	char left[PATH_BYTES], right[PATH_BYTES];
	double most = 0;
	snprintf(left, sizeof left, "%s/%s-%s/metrics.jsonl", test_folder, task, a);
	snprintf(right, sizeof right, "%s/%s-%s/metrics.jsonl", test_folder, task, b);
	for (int64_t step = 1; step <= steps; step++) {
		double x = metric_at(left, step, measure), y = metric_at(right, step, measure);
		assert_true(isfinite(x) && isfinite(y));
		most = fmax(most, fabs(x - y) / fabs(x));
	}
	return most;
}

#endif
