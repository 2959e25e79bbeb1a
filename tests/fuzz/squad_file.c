/* SQuAD's JSON files. Answers that were found are at their stated positions, and indices are valid. */
#include "tasks/squad/squad_file.h"
#include "fuzz.h"

FUZZ_SEEDS(
	FUZZ_SEED("{\"version\": \"1.1\", \"data\": [{\"title\": \"T\", \"paragraphs\": [{\"context\": \"\\u00e9 Ann\", \"qas\": "
		  "[{\"id\": 7, \"question\": \"q\", \"is_impossible\": false, \"answers\": [{\"text\": \"Ann\", "
		  "\"answer_start\": 2}, "
		  "{\"text\": \"Eve\", \"answer_start\": 0}]}]}]}]}"),
	FUZZ_SEED("{\"data\": [{\"paragraphs\": [{\"context\": \"\", \"qas\": [{\"id\": \"a\", \"question\": \"\", "
		  "\"is_impossible\": "
		  "true}]}]}]}"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	const char *path = fuzz_file("squad.json", bytes, count);
	for (int use = SQUAD_TRAIN; use <= SQUAD_PREDICT; use++) {
		struct squad_set set;
		struct bad_records bad = {.skip = count % 2};
		struct squad_options options = {.use = (enum squad_use)use, .allow_impossible = count % 3 > 0, .bad = &bad};
		if (squad_read(&set, path, &options) != OK)
			continue;
		for (int64_t i = 0; i < set.question_count; i++) {
			const struct squad_question *question = &set.questions[i];
			const struct squad_paragraph *paragraph = &set.paragraphs[question->paragraph];
			BUG_IF(question->first_answer + question->answer_count > set.answer_count);
			BUG_IF(i < paragraph->first_question || i >= paragraph->first_question + paragraph->question_count);
			for (int64_t a = question->first_answer; a < question->first_answer + question->answer_count; a++) {
				const struct squad_answer *answer = &set.answers[a];
				BUG_IF(!squad_is_placed(answer) && use == SQUAD_TRAIN);
				BUG_IF((answer->place == SQUAD_FOUND || answer->place == SQUAD_SHIFTED) &&
				       (answer->start_byte + answer->text_size > paragraph->text_size ||
					memcmp(paragraph->text + answer->start_byte, answer->text, (size_t)answer->text_size) !=
						0));
			}
		}
		squad_release(&set);
	}
	return 0;
}
