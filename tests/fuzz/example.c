/* tf.Example messages, and the rows made from their features. */
#include "formats/example.h"
#include "data/pretraining/instance_files.h"
#include "fuzz.h"

#define MOST 64

FUZZ_SEEDS(FUZZ_SEED("\x0a\x1f\x78\x05\x0a\x0b\x0a\x01\x61\x12\x06\x1a\x04\x08\x03\x08\x07\x0a\x0e\x12\x09\x1a\x07\x0a\x05"
		     "\xff\xff\xff\xff\x1f\x0a\x01\x62"),
	   FUZZ_SEED("\x0a\x14\x0a\x12\x0a\x09input_ids\x12\x05\x1a\x03\x0a\x01\x05"),
	   FUZZ_SEED("\x0a\x12\x0a\x10\x0a\x01w\x12\x0b\x12\x09\x0d\x00\x00\x80\x3f\x0a\x02\x00\x00"))

/* Uses the values as a row of an instance: whatever they are, it is accepted or refused. */
static void try_row(const int32_t *values, int64_t count, const float *weights)
{
	static struct instance instance;
	int64_t length = count / 3, predictions = length / 2;
	struct padded_row row = {.length = length,
				 .predictions = predictions,
				 .ids = values,
				 .mask = values + length,
				 .segments = values + 2 * length,
				 .positions = values,
				 .labels = values + length,
				 .weights = count % 2 ? weights : NULL,
				 .next_label = count > 0 ? values[0] : -1};
	if (instance.ids == NULL)
		BUG_IF(instance_create(&instance, MOST, MOST) != OK);
	if (instance_from_row(&row, &(struct instance_demands){.vocab_size = 100}, &instance) != OK)
		return;
	BUG_IF(instance.length < 1 || instance.length > length || instance.prediction_count > predictions);
	for (int32_t i = 0; i < instance.prediction_count; i++)
		BUG_IF(instance.prediction_positions[i] >= instance.length ||
		       (i > 0 && instance.prediction_positions[i] <= instance.prediction_positions[i - 1]));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static struct tf_example example;
	int32_t integers[MOST];
	float floats[MOST] = {0};
	unsigned char *message = (unsigned char *)fuzz_copy(bytes, count);
	if (example_parse(&example, message, count) == OK) {
		for (int i = 0; i < example.count; i++) {
			const struct example_feature *feature = &example.features[i];
			int64_t found, counted;
			BUG_IF(example_find(&example, feature->name) == NULL);
			if (feature_floats(feature, floats, MOST, &found) == OK && feature->kind == FEATURE_FLOATS)
				BUG_IF(feature_count(feature, &counted) != OK || counted != found);
			if (feature_integers(feature, integers, MOST, &found) == OK && feature->kind == FEATURE_INTEGERS) {
				BUG_IF(feature_count(feature, &counted) != OK || counted != found);
				try_row(integers, found, floats);
			}
		}
	}
	free(message);
	return 0;
}
