/* Files of answers, n-best lists and null scores: accepted files can be scored, and fractions stay between 0 and 1. The
 * first byte tells which of these the rest is. */
#include "tasks/squad/squad_score.h"
#include "fuzz.h"

FUZZ_SEEDS(FUZZ_SEED("\0{\"a\": \"An\\u00e9 cat's\", \"b\": \"\", \"c\": \"x\"}"),
	   FUZZ_SEED("\0{\"a\": [{\"text\": \"\"}, {\"text\": \"the cat\", \"probability\": 0.5}], \"b\": [], \"c\": \"\"}"),
	   FUZZ_SEED("\1{\"a\": -1.5, \"b\": 0.25, \"c\": 1e3}"),
	   FUZZ_SEED("\2\"can't\" gonna (3,000.) 'tis ``x'' d'ye ... \xE2\x80\x9Cok\xE2\x80\x9D \xE4\xB8\xAD\xE5\x9B\xBD"))

static const char dataset[] =
	"{\"data\": [{\"paragraphs\": [{\"context\": \"c\", \"qas\": [{\"id\": \"a\", \"question\": \"q\", \"answers\": "
	"[{\"text\": \"an\xC3\xA9 cat\", \"answer_start\": 0}, {\"text\": \"\xE4\xB8\xAD\xE5\x9B\xBD 1990\", \"answer_start\": "
	"0}]}, "
	"{\"id\": \"b\", \"question\": \"q\", \"answers\": []}, {\"id\": \"c\", \"question\": \"q\", \"answers\": [{\"text\": "
	"\"the\", \"answer_start\": 0}]}]}]}]}";

static const struct squad_set *the_set(void)
{
	static struct squad_set set;
	struct bad_records bad = {.skip = false};
	if (set.question_count == 0) {
		const char *path = fuzz_file("dataset.json", (const uint8_t *)dataset, sizeof dataset - 1);
		BUG_IF(squad_read(&set, path,
				  &(struct squad_options){.use = SQUAD_PREDICT, .allow_impossible = true, .bad = &bad}) != OK);
	}
	return &set;
}

static void score(const struct squad_set *set, const char *const *texts, const struct squad_null_scores *null_scores)
{
	struct measures measures = {0};
	enum status status = squad_score_2(set, texts, null_scores, 0.5, &measures);
	for (int i = 0; status == OK && i < measures.count; i++)
		BUG_IF(measures.item[i].unit == UNIT_POINTS &&
		       !(measures.item[i].value >= 0 && measures.item[i].value <= 100.001));
	struct squad_set answered = *set; /* without the question that has no answer */
	struct squad_question questions[2] = {set->questions[0], set->questions[2]};
	const char *some[2] = {texts[0], texts[2]};
	answered.questions = questions;
	answered.question_count = 2;
	measures = (struct measures){0};
	BUG_IF(squad_score_1(&answered, some, &measures) != OK || !(measures_get(&measures, "f1") <= 100.001));
	measures = (struct measures){0};
	BUG_IF(squad_score_chinese(&answered, some, &measures) != OK);
	BUG_IF(!(measures_get(&measures, "f1") <= 100.001));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	const struct squad_set *set = the_set();
	struct squad_predictions predictions;
	struct squad_null_scores null_scores;
	struct squad_thresholds thresholds;
	const char *texts[3] = {"cat", "", "x"};
	if (count == 0)
		return 0;
	if (bytes[0] % 3 == 2) { /* any text as an answer */
		char *text = calloc(count, 1);
		BUG_IF(!text);
		memcpy(text, bytes + 1, count - 1);
		texts[0] = text;
		score(set, texts, NULL);
		free(text);
		return 0;
	}
	const char *path = fuzz_file("answers.json", bytes + 1, count - 1);
	if (bytes[0] % 3 == 0 && squad_predictions_read(&predictions, path, set) == OK) {
		score(set, predictions.texts, NULL);
		squad_predictions_release(&predictions);
	}
	if (bytes[0] % 3 == 1 && squad_null_scores_read(&null_scores, path, set) == OK) {
		score(set, texts, &null_scores);
		BUG_IF(squad_find_thresholds(set, texts, null_scores.by_question, &thresholds) != OK);
		squad_null_scores_release(&null_scores);
	}
	return 0;
}
