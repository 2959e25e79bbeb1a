/* A checkpoint's records: the first byte selects MANIFEST.json, whose own checksum is corrected first, training_state.json
 * or config.json. */
#include <inttypes.h>
#include "backend/ops.h"
#include "base/hash.h"
#include "fuzz.h"
#include "train/checkpoint_internal.h"
#include "weights/manifest.h"
#include "weights/model_folder.h"

#define CHECKSUM ",\n  \"manifest_crc32c\": "

static const struct fuzz_seed seeds[] = {
	FUZZ_SEED("\0{\n  \"format\": 2,\n  \"step\": 1,\n  \"files\": [\n    {\"name\": \"config.json\", \"bytes\": 2, "
		  "\"crc32c\": 0}\n  ]" CHECKSUM "0\n}\n"),
	FUZZ_SEED("\0{\"format\": 2, \"files\": [{\"name\": \"config.json\", \"bytes\": 2, \"crc32c\": 3}, {\"name\": "
		  "\"../a\", \"bytes\": 0, \"crc32c\": 0}]" CHECKSUM "0\n}\n"),
	FUZZ_SEED("\0{\"format\": 3" CHECKSUM "0\n}\n"),
	FUZZ_SEED("\1{\"format\": 1, \"step\": 5, \"samples\": 40, \"tokens\": 400, \"seconds\": 1.5, \"epoch\": 1, "
		  "\"epoch_first_sample\": 20, \"skipped_steps\": 0, \"update_count\": 5, \"phase\": {\"index\": 1, "
		  "\"first_step\": 2, \"first_sample\": 8, \"first_token\": 80, \"evaluations\": 1, \"stalled\": 0, "
		  "\"best_score\": 1}, \"evaluated_step\": 4, \"evaluated_score\": 1, \"best\": {\"step\": 3, \"score\": 2}, "
		  "\"guard\": {\"skipped_in_row\": 1, \"recent\": [0, 0, 0, 0, 0, 0, 0, 0, 2, 3], \"loss_scale\": 65536, "
		  "\"clean_steps\": 1, "
		  "\"dynamic\": true, \"observed\": 2, \"losses\": [1, 2], \"norms\": [3, 4]}, \"data_hash\": "
		  "\"00ff00ff00ff00ff\", "
		  "\"settings\": {}}"),
	FUZZ_SEED("\1{\"format\": 2, \"step\": 5, \"data_hash\": \"1\"}"),
	FUZZ_SEED("\2{\"model_type\": \"bert\", \"vocab_size\": 100, \"hidden_size\": 8, \"num_hidden_layers\": 1, "
		  "\"num_attention_heads\": 2, \"hidden_act\": \"gelu\", \"layer_norm_eps\": 1e-12}"),
	FUZZ_SEED("\2{\"architectures\": [\"BertForTokenClassification\"], \"classifier_dropout\": 0.1, \"id2label\": "
		  "{\"0\": \"O\", \"1\": \"B-X\"}, \"label2id\": {\"O\": 0, \"B-X\": 1}, \"problem_type\": null}"),
	FUZZ_SEED("\2{\"architectures\": [], \"label2id\": {\"a\": 1, \"b\": 0}, \"num_labels\": 2, \"problem_type\": "
		  "\"regression\"}"),
	FUZZ_SEED("\2{\"hidden_act\": \"gelu_new\", \"position_embedding_type\": \"absolute\", \"type_vocab_size\": 2}"),
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char seed[512];
	(void)argc;
	fuzz_write_seeds(*argv, seeds, sizeof seeds / sizeof *seeds);
	int size = snprintf(seed + 1, sizeof seed - 1,
			    "{\"format\": 2, \"step\": 1, \"files\": [{\"name\": \"config.json\", \"bytes\": 2, "
			    "\"crc32c\": %u}]" CHECKSUM "0\n}\n",
			    crc32c(0, "{}", 2));
	seed[0] = 0;
	fuzz_add_seed(*argv, seed, (size_t)size + 1);
	return 0;
}

/* No target here has weights; without this stub, all back ends would have to be linked. */
void weights_refresh(struct replica *replica, struct weight *const *weights, int64_t count)
{
	(void)replica;
	(void)weights;
	BUG_IF(count >= 0);
}

/* The manifest with the correct checksum of its bytes. */
static const char *verified(const uint8_t *bytes, size_t count)
{
	static char text[1 << 16];
	size_t at = count;
	if (count + sizeof CHECKSUM + 16 > sizeof text)
		return fuzz_file(MANIFEST_NAME, bytes, count);
	while (at > 0 && (count - at < strlen(CHECKSUM) || memcmp(bytes + at, CHECKSUM, strlen(CHECKSUM)) != 0))
		at--;
	if (at == 0)
		return fuzz_file(MANIFEST_NAME, bytes, count);
	memcpy(text, bytes, at);
	int size = snprintf(text + at, sizeof text - at, CHECKSUM "%" PRIu32 "\n}\n", crc32c(0, bytes, at));
	return fuzz_file(MANIFEST_NAME, (const uint8_t *)text, at + (size_t)size);
}

static void read_manifest(const uint8_t *bytes, size_t count)
{
	struct manifest_facts facts;
	fuzz_file("config.json", (const uint8_t *)"{}", 2);
	verified(bytes, count);
	enum status all = manifest_verify(fuzz_folder, &facts);
	BUG_IF(all == OK && (facts.files < 1 || facts.bytes < 0));
	enum status one = manifest_verify_file(fuzz_file("config.json", (const uint8_t *)"{}", 2));
	BUG_IF(all == OK && one != OK);
}

static void read_state(const uint8_t *bytes, size_t count)
{
	struct json_document document;
	struct train_state state;
	uint64_t hash;
	if (json_parse(&document, "training_state.json", (const char *)bytes, count) != OK)
		return;
	if (checkpoint_state_read(document.root, "training_state.json", &state, &hash) == OK) {
		BUG_IF(state.step < 0 || state.samples < 0 || state.best_step > state.step);
		BUG_IF(state.phase.first_step > state.step || state.phase.index < 0);
	}
	json_release(&document);
}

static void read_config(const uint8_t *bytes, size_t count)
{
	struct model_config config;
	struct task_config task;
	const char *path = fuzz_file("config.json", bytes, count);
	if (model_folder_task(path, &task) == OK) {
		for (int32_t i = 0; task.labels && i < task.label_count; i++)
			BUG_IF(!task.labels[i] || task_config_find_label(&task, task.labels[i]) > i);
		task_config_release(&task);
	}
	if (model_folder_config(path, &config) != OK)
		return;
	BUG_IF(config.hidden_size < 1 || config.num_attention_heads < 1 || config.vocab_size < 0);
	BUG_IF(config.hidden_size % config.num_attention_heads != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static void (*const readers[])(const uint8_t *, size_t) = {read_manifest, read_state, read_config};
	if (count > 0)
		readers[bytes[0] % 3](bytes + 1, count - 1);
	return 0;
}
