/* The calibration in the record of a task. One that is accepted has values that answers can be made with, and is read back the
 * same after being written. */
#include "tasks/calibration.h"

#include <math.h>
#include "fuzz.h"

FUZZ_SEEDS(FUZZ_SEED("{\"calibration\": {\"temperature\": 1.5, \"min_score\": 0.25}}"),
	   FUZZ_SEED("{\"calibration\": {\"divides\": true, \"thresholds\": [0.5, 0.75]}}"),
	   FUZZ_SEED("{\"calibration\": {\"temperature\": 2, \"divides\": false, \"thresholds\": [0.5, null, 1]}}"))

static bool read_text(const char *text, size_t size, struct calibration *out)
{
	struct json_document document = {0};
	bool fine =
		json_parse(&document, "record", text, size) == OK && calibration_read_record(document.root, "record", out) == OK;
	json_release(&document);
	return fine;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct calibration calibration = {0}, again = {0};
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	char *copy = fuzz_copy(bytes, count);
	if (read_text(copy, count, &calibration)) {
		BUG_IF(!(calibration.temperature >= 0 && calibration.min_score >= 0 && calibration.min_score <= 1));
		for (int64_t i = 0; i < calibration.count; i++)
			BUG_IF(!(calibration.thresholds[i] >= 0));
		json_open(&writer, NULL, '{');
		calibration_put_record(&calibration, &writer);
		json_close(&writer);
		BUG_IF(!read_text(buffer_string(&text), text.size, &again));
		BUG_IF(again.temperature != calibration.temperature || again.min_score != calibration.min_score);
		BUG_IF(again.count != calibration.count || (again.thresholds && again.divides != calibration.divides));
		for (int64_t i = 0; i < calibration.count; i++)
			BUG_IF(again.thresholds[i] != calibration.thresholds[i]);
	}
	buffer_release(&text);
	calibration_release(&calibration);
	calibration_release(&again);
	free(copy);
	return 0;
}
