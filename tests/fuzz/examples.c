/* Tables as examples: of classification, pairs, choices, relations and rankings. The first two bytes choose the task and the
 * options. Every example has a text, a place in its file, and the label that its task needs. */
#include "tasks/examples.h"
#include "tasks/mentions.h"
#include "tasks/ranking_file.h"
#include "fuzz.h"

FUZZ_SEEDS(FUZZ_SEED("\0\0label\ttext\n1\ta b\n0\tc\n"), FUZZ_SEED("\1\0a\tb\t1\nc\td\t0\n"),
	   FUZZ_SEED("\2\1{\"sent1\": \"a\", \"ending0\": \"b\", \"ending1\": \"c\", \"label\": 1}\n"),
	   FUZZ_SEED("\2\0[{\"question\": {\"stem\": \"a\", \"choices\": [{\"label\": \"A\", \"text\": \"b\"}]}, \"answerKey\": "
		     "\"A\"}]"),
	   FUZZ_SEED("\4\1label\ttext\nx\t<< a >> b [[ c ]]\n"),
	   FUZZ_SEED("\4\1{\"token\": [\"a\", \"b\"], \"subj_start\": 0, \"subj_end\": 0, \"obj_start\": 1, \"obj_end\": 1, "
		     "\"relation\": \"r\"}\n{\"text\": \"ab\", \"h\": [0, 1], \"t\": {\"pos\": [1, 2]}, \"label\": \"q\"}\n"),
	   FUZZ_SEED("\5\0query,positive,negative_1\na,b,c\n"),
	   FUZZ_SEED("\5\3{\"query\": \"a\", \"pos\": [\"b\"], \"neg\": [\"c\", \"d\"], \"score\": 0.5}\n"),
	   FUZZ_SEED("\3\0left_context\ttext\ttarget\nx\ty\tz\n"))

static void read_ranking(const char *path, uint8_t flags, struct bad_records *bad)
{
	struct example_set set = {0};
	enum ranking_form form;
	struct ranking_options options = {.scores_all = flags & 1,
					  .allows_texts = flags & 2,
					  .needs_scores = flags & 4,
					  .allows_empty = flags & 8,
					  .negatives = flags & 16 ? "negative_1" : NULL,
					  .bad = bad};
	if (ranking_file_read(&set, path, &options, &form) == OK)
		for (int64_t i = 0; i < set.count; i++) {
			const struct example_text *example = &set.examples[i];
			BUG_IF(!example->text || example->line < 1);
			BUG_IF(!options.allows_texts && !example->pair);
			BUG_IF(!options.allows_empty && !*example->text);
			BUG_IF(options.scores_all && form != RANKING_TEXTS && options.needs_scores && !example->label);
			BUG_IF(example->choice_count < 0 || example->first_choice + example->choice_count > set.choice_count);
		}
	example_set_release(&set);
}

static void use(const struct example_set *set, int64_t i, const struct example_options *options)
{
	static struct marked_text marked;
	const struct example_text *example = &set->examples[i];
	int32_t right;
	BUG_IF(!example->text || example->line < 1 || (options->needs_labels && !example->label));
	BUG_IF(!options->allows_empty && !*example->text && example->choice_count == 0);
	BUG_IF(example->choice_count < 0 || example->first_choice + example->choice_count > set->choice_count);
	if (options->input == TASK_INPUT_CHOICES && example->label && example_right_choice(set, i, &right) == OK)
		BUG_IF(right < 0 || right >= example->choice_count);
	if (!options->relates)
		return;
	const struct mention_form *form = mention_form_detect(example->text);
	enum status status = ERR_DATA;
	if (mentions_have_places(set, i))
		status = mentions_mark(set, i, mention_form_usual(), &marked);
	else if (form)
		status = mentions_find(example, form, &marked);
	for (int mark = 0; mark < MENTION_MARKS && status == OK; mark++)
		BUG_IF(marked.at[mark] >= marked.text.size);
	if (status == OK)
		BUG_IF(marked.at[FIRST_BEGINS] >= marked.at[FIRST_ENDS] || marked.at[SECOND_BEGINS] >= marked.at[SECOND_ENDS]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	if (count < 2)
		return 0;
	uint8_t flags = bytes[1];
	struct bad_records bad = {.skip = flags & 64};
	const char *path = fuzz_file("table", bytes + 2, count - 2);
	if (bytes[0] % 6 == 5) {
		read_ranking(path, flags, &bad);
		return 0;
	}
	static const struct {
		enum task_input input;
		enum task_target target;
		bool relates;
	} tasks[] = {{TASK_INPUT_TEXT, TARGET_CLASS, false},
		     {TASK_INPUT_PAIR, TARGET_NUMBER, false},
		     {TASK_INPUT_CHOICES, TARGET_CHOICE, false},
		     {TASK_INPUT_DIALOGUE, TARGET_PARTS, false},
		     {TASK_INPUT_TEXT, TARGET_CLASS, true}};
	int task = bytes[0] % 6;
	struct example_set set = {0};
	struct example_options options = {.input = tasks[task].input,
					  .target = bytes[0] & 64 ? TARGET_CLASSES : tasks[task].target,
					  .relates = tasks[task].relates,
					  .needs_labels = flags & 1,
					  .allows_empty = !(flags & 1) && flags & 2,
					  .header = flags & 4 ? TABLE_YES : TABLE_DETECT,
					  .given = {.text = flags & 8 ? "2" : NULL, .label = flags & 16 ? "1" : NULL},
					  .bad = &bad};
	if (example_set_read(&set, path, &options) == OK)
		for (int64_t i = 0; i < set.count; i++)
			use(&set, i, &options);
	example_set_release(&set);
	return 0;
}
