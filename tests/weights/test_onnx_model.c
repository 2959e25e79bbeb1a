/* The graphs of bertc export --to onnx, read back by a reader of the test's own: a checker's rules (values are produced
 * before they are used, names are defined once), the weights' numbers, and the shapes of inputs and outputs.
 * dev/onnx_check.py checks that onnxruntime computes the same as transformers. */
#include <math.h>
#include "test.h"
#include "base/buffer.h"
#include "formats/little_endian.h"
#include "formats/onnx_file.h"
#include "formats/varint.h"
#include "weights/onnx_model.h"

/* ---- A reader of protocol buffers ---- */

struct field {
	uint64_t number, value;
	struct byte_range bytes;
};

static bool next_field(struct byte_range *message, struct field *out)
{
	uint64_t key = 0, size = 0;
	if (message->at == message->end)
		return false;
	assert_true(range_varint(message, &key));
	*out = (struct field){.number = key >> 3};
	switch (key & 7) {
	case 0: assert_true(range_varint(message, &out->value)); break;
	case 2:
		assert_true(range_varint(message, &size));
		assert_true(range_bytes(message, size, &out->bytes));
		break;
	case 5:
		assert_true(range_bytes(message, 4, &out->bytes));
		out->value = read_le32(out->bytes.at);
		break;
	default: fail_msg("a field of kind %d", (int)(key & 7));
	}
	return true;
}

static const char *text_of(struct byte_range bytes)
{
	static char texts[8][256];
	static int turn;
	char *text = texts[turn++ % 8];
	assert_true(range_left(&bytes) < sizeof texts[0]);
	memcpy(text, bytes.at, range_left(&bytes));
	text[range_left(&bytes)] = '\0';
	return text;
}

/* ---- The contents of a file ---- */

struct stored {
	char name[128], location[64];
	int64_t shape[4], count, offset, length;
	int rank, type;
	struct byte_range raw;
};
struct value {
	char name[64];
	int type, rank;
	char dimensions[4][32]; /* a name, or digits */
};
struct facts {
	struct buffer file;
	int64_t ir_version, opset;
	struct stored tensors[200];
	struct value inputs[8], outputs[8];
	char made[800][128]; /* names of values, in the order in which they are produced */
	int tensor_count, input_count, output_count, made_count, node_count;
	int erf, tanh, used[200];
};

static bool is_made(const struct facts *facts, const char *name)
{
	for (int i = 0; i < facts->made_count; i++)
		if (strcmp(facts->made[i], name) == 0)
			return true;
	return false;
}

static void make(struct facts *facts, const char *name)
{
	if (is_made(facts, name))
		fail_msg("'%s' is made twice", name);
	assert_true(facts->made_count < 800);
	snprintf(facts->made[facts->made_count++], 128, "%s", name);
}

static void read_entry(struct byte_range message, struct stored *out)
{
	struct field field;
	const char *key = "", *value = "";
	while (next_field(&message, &field))
		*(field.number == 1 ? &key : &value) = text_of(field.bytes);
	if (strcmp(key, "location") == 0)
		snprintf(out->location, sizeof out->location, "%.63s", value);
	else if (strcmp(key, "offset") == 0)
		out->offset = strtoll(value, NULL, 10);
	else if (strcmp(key, "length") == 0)
		out->length = strtoll(value, NULL, 10);
}

static void read_tensor(struct facts *facts, struct byte_range message)
{
	struct stored *out = &facts->tensors[facts->tensor_count++];
	struct field field;
	assert_true(facts->tensor_count < 200);
	out->count = 1;
	while (next_field(&message, &field)) {
		switch (field.number) {
		case 1: out->count *= out->shape[out->rank++] = (int64_t)field.value; break;
		case 2: out->type = (int)field.value; break;
		case 8: snprintf(out->name, sizeof out->name, "%.127s", text_of(field.bytes)); break;
		case 9: out->raw = field.bytes; break;
		case 13: read_entry(field.bytes, out); break;
		case 14: assert_int_equal(field.value, 1); break;
		default: fail_msg("a tensor has field %d", (int)field.number);
		}
	}
	make(facts, out->name);
}

static void read_shape(struct byte_range message, struct value *out)
{
	struct field dimension, part;
	while (next_field(&message, &dimension)) {
		assert_true(next_field(&dimension.bytes, &part));
		if (part.number == 2)
			snprintf(out->dimensions[out->rank++], 32, "%.31s", text_of(part.bytes));
		else
			snprintf(out->dimensions[out->rank++], 32, "%d", (int)part.value);
	}
}

static void read_value(struct value *out, struct byte_range message)
{
	struct field field, kind, part;
	while (next_field(&message, &field)) {
		if (field.number == 1) {
			snprintf(out->name, sizeof out->name, "%.63s", text_of(field.bytes));
			continue;
		}
		assert_true(next_field(&field.bytes, &kind));
		while (next_field(&kind.bytes, &part))
			if (part.number == 1)
				out->type = (int)part.value;
			else
				read_shape(part.bytes, out);
	}
}

static void read_node(struct facts *facts, struct byte_range message)
{
	struct field field;
	while (next_field(&message, &field)) {
		const char *text = field.number <= 4 ? text_of(field.bytes) : "";
		if (field.number == 1 && !is_made(facts, text))
			fail_msg("'%s' is used before it is made", text);
		for (int i = 0; i < facts->tensor_count; i++)
			facts->used[i] += field.number == 1 && strcmp(facts->tensors[i].name, text) == 0;
		if (field.number == 2)
			make(facts, text);
		facts->erf += field.number == 4 && strcmp(text, "Erf") == 0;
		facts->tanh += field.number == 4 && strcmp(text, "Tanh") == 0;
	}
	facts->node_count++;
}

static void read_graph(struct facts *facts, struct byte_range message)
{
	struct byte_range again = message;
	struct field field;
	bool has_name = false;
	while (next_field(&message, &field)) {
		if (field.number == 5)
			read_tensor(facts, field.bytes);
		else if (field.number == 11)
			read_value(&facts->inputs[facts->input_count++], field.bytes);
		else if (field.number == 12)
			read_value(&facts->outputs[facts->output_count++], field.bytes);
		has_name |= field.number == 2;
	}
	assert_true(has_name);
	for (int i = 0; i < facts->input_count; i++)
		make(facts, facts->inputs[i].name);
	while (next_field(&again, &field))
		if (field.number == 1)
			read_node(facts, field.bytes);
	for (int i = 0; i < facts->output_count; i++)
		if (!is_made(facts, facts->outputs[i].name))
			fail_msg("output '%s' is never made", facts->outputs[i].name);
	for (int i = 0; i < facts->tensor_count; i++)
		if (!facts->used[i])
			fail_msg("'%s' is never used", facts->tensors[i].name);
}

static struct facts *read_model(const char *path)
{
	struct facts *facts = calloc(1, sizeof *facts);
	struct field field, part;
	assert_non_null(facts);
	assert_ok(file_read(path, 1 << 26, &facts->file));
	struct byte_range message = {(unsigned char *)facts->file.data, (unsigned char *)facts->file.data + facts->file.size};
	while (next_field(&message, &field)) {
		if (field.number == 1)
			facts->ir_version = (int64_t)field.value;
		else if (field.number == 7)
			read_graph(facts, field.bytes);
		else if (field.number == 8)
			while (next_field(&field.bytes, &part))
				facts->opset = part.number == 2 ? (int64_t)part.value : facts->opset;
	}
	assert_int_equal(facts->ir_version, 8);
	assert_int_equal(facts->opset, 17);
	return facts;
}

static void release(struct facts *facts)
{
	buffer_release(&facts->file);
	free(facts);
}

/* ---- Models ---- */

static struct backend names = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32};

static struct onnx_model_content make_content_of(const struct model_config *config, const struct model_heads *heads)
{
	struct onnx_model_content content = {.slab = NULL};
	struct model *model;
	assert_ok(model_create(&model, &names, config, heads));
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	assert_non_null(slab);
	for (int64_t i = 0; i < model->slab_count; i++)
		slab[i] = (float)i / 64;
	content.model = model;
	content.slab = slab;
	return content;
}

static struct model_config sizes(enum activation activation)
{
	struct model_config config;
	assert_ok(model_config_named(&config, "tiny"));
	config.vocab_size = 12;
	config.hidden_size = 8;
	config.num_attention_heads = 2;
	config.intermediate_size = 24;
	config.max_position_embeddings = 10;
	config.hidden_act = activation;
	return config;
}

static struct onnx_model_content make_content(const struct model_heads *heads, enum activation activation)
{
	struct model_config config = sizes(activation);
	return make_content_of(&config, heads);
}

static void drop_content(struct onnx_model_content *content)
{
	free((void *)(uintptr_t)content->slab);
	model_free((struct model *)(uintptr_t)content->model);
}

/* Every parameter is in the file, once; matrices for products are stored transposed. */
static void check_weights(const struct facts *facts, const struct onnx_model_content *content, const struct buffer *data)
{
	const struct model *model = content->model;
	for (int64_t p = 0; p < model->parameter_count; p++) {
		const struct parameter *parameter = &model->parameters[p];
		const struct stored *tensor = NULL;
		for (int i = 0; i < facts->tensor_count; i++)
			if (strcmp(facts->tensors[i].name, parameter->name) == 0)
				tensor = &facts->tensors[i];
		if (!tensor)
			fail_msg("'%s' is not in the file", parameter->name);
		assert_int_equal(tensor->type, 1);
		assert_int_equal(tensor->count, parameter->count);
		struct byte_range raw = tensor->raw;
		if (data) {
			assert_int_equal(range_left(&raw), 0);
			assert_string_equal(tensor->location, "apart.onnx_data");
			assert_int_equal(tensor->offset % 4096, 0);
			assert_int_equal(tensor->length, tensor->count * 4);
			assert_true(tensor->offset + tensor->length <= (int64_t)data->size);
			raw.at = (unsigned char *)data->data + tensor->offset;
			raw.end = raw.at + tensor->length;
		}
		assert_int_equal(range_left(&raw), (size_t)parameter->count * 4);
		bool is_table = strstr(parameter->name, "embeddings.weight") != NULL;
		bool turned = parameter_rank(parameter) == 2 && !is_table;
		assert_int_equal(tensor->rank, parameter_rank(parameter));
		if (turned) {
			assert_int_equal(tensor->shape[0], parameter->columns);
			assert_int_equal(tensor->shape[1], parameter->rows);
		}
		for (int64_t i = 0; i < parameter->count; i++) {
			int64_t row = turned ? i % parameter->rows : 0, column = turned ? i / parameter->rows : i;
			uint32_t bits = read_le32(raw.at + 4 * i), expected;
			memcpy(&expected, content->slab + parameter->offset + row * parameter->columns + column, 4);
			if (bits != expected)
				fail_msg("number %d of '%s' is another", (int)i, parameter->name);
		}
	}
}

static void check_value(const struct value *value, int type, const char *name, int rank, const char *const *dimensions)
{
	assert_string_equal(value->name, name);
	assert_int_equal(value->type, type);
	assert_int_equal(value->rank, rank);
	for (int i = 0; i < rank; i++)
		assert_string_equal(value->dimensions[i], dimensions[i]);
}

#define DIMENSIONS(...)                                                                                                          \
	(int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)), (const char *const[])                                \
	{                                                                                                                        \
		__VA_ARGS__                                                                                                      \
	}

static struct facts *write_and_read(const struct onnx_model_content *content)
{
	static const char *const inputs[] = {"input_ids", "attention_mask", "token_type_ids"};
	const char *path = test_path("model.onnx");
	assert_ok(onnx_model_write(path, content, ONNX_FILE_LIMIT));
	struct facts *facts = read_model(path);
	check_weights(facts, content, NULL);
	for (int i = 0; i < facts->input_count && i < 3; i++) {
		assert_string_equal(facts->inputs[i].name, inputs[i]);
		assert_int_equal(facts->inputs[i].type, 7);
	}
	return facts;
}

static void masked_words(void **state)
{
	struct onnx_model_content content = make_content(&model_heads_pretraining, ACTIVATION_GELU_ERF);
	struct facts *facts = write_and_read(&content);
	assert_int_equal(facts->input_count, 3);
	check_value(&facts->inputs[0], 7, "input_ids", DIMENSIONS("batch", "sequence"));
	assert_int_equal(facts->output_count, 2);
	check_value(&facts->outputs[0], 1, "logits", DIMENSIONS("batch", "sequence", "12"));
	check_value(&facts->outputs[1], 1, "seq_relationship_logits", DIMENSIONS("batch", "2"));
	assert_int_equal(facts->erf, 3); /* two layers and the head's transform */
	assert_int_equal(facts->tanh, 1);
	release(facts);
	drop_content(&content);
}

static void encoder_with_every_pooling(void **state)
{
	struct onnx_model_content content = make_content(&model_heads_none, ACTIVATION_GELU_TANH);
	content.pooling = (1u << POOLING_MODES) - 1;
	content.normalize = true;
	struct facts *facts = write_and_read(&content);
	assert_int_equal(facts->output_count, 3);
	check_value(&facts->outputs[0], 1, "last_hidden_state", DIMENSIONS("batch", "sequence", "8"));
	check_value(&facts->outputs[1], 1, "pooler_output", DIMENSIONS("batch", "8"));
	check_value(&facts->outputs[2], 1, "sentence_embedding", DIMENSIONS("batch", "48"));
	assert_int_equal(facts->erf, 0);
	assert_int_equal(facts->tanh, 3); /* two layers and the pooler */
	release(facts);
	content.truncate_dim = 20;
	facts = write_and_read(&content);
	check_value(&facts->outputs[2], 1, "sentence_embedding", DIMENSIONS("batch", "20"));
	assert_true(is_made(facts, "/sentence_embedding/part_0"));
	release(facts);
	for (int mode = 0; mode < POOLING_MODES; mode++) { /* each without what only others need */
		content.pooling = 1u << mode;
		release(write_and_read(&content));
	}
	drop_content(&content);
}

static void heads_of_tasks(void **state)
{
	const struct model_heads classes = {
		.architecture = "BertForSequenceClassification",
		.pooler = true,
		.count = 1,
		.head = {{.input = INPUT_FIRST_ROW, .pooled = true, .outputs = 5, .loss = LOSS_CLASSES, .name = "classifier"}}};
	const struct model_heads tags = {
		.count = 1, .head = {{.input = INPUT_CHOSEN_ROWS, .outputs = 5, .loss = LOSS_CLASSES, .name = "classifier"}}};
	const struct model_heads answers = {
		.count = 1, .head = {{.input = INPUT_ALL_ROWS, .outputs = 2, .loss = LOSS_SEGMENT, .name = "qa_outputs"}}};
	const struct model_heads choices = {
		.pooler = true,
		.count = 1,
		.head = {{.input = INPUT_FIRST_ROW, .pooled = true, .outputs = 1, .loss = LOSS_GROUP, .name = "classifier"}}};
	const struct model_heads relations = {
		.count = 1,
		.head = {{.input = INPUT_CHOSEN_ROWS, .joined = 2, .outputs = 3, .loss = LOSS_CLASSES, .name = "classifier"}}};
	struct onnx_model_content content = make_content(&classes, ACTIVATION_GELU_ERF);
	struct facts *facts = write_and_read(&content);
	assert_int_equal(facts->output_count, 1);
	check_value(&facts->outputs[0], 1, "logits", DIMENSIONS("batch", "5"));
	release(facts);
	drop_content(&content);

	content = make_content(&tags, ACTIVATION_GELU_ERF);
	facts = write_and_read(&content);
	check_value(&facts->outputs[0], 1, "logits", DIMENSIONS("batch", "sequence", "5"));
	release(facts);
	drop_content(&content);

	content = make_content(&answers, ACTIVATION_GELU_ERF);
	facts = write_and_read(&content);
	check_value(&facts->outputs[0], 1, "start_logits", DIMENSIONS("batch", "sequence"));
	check_value(&facts->outputs[1], 1, "end_logits", DIMENSIONS("batch", "sequence"));
	release(facts);
	drop_content(&content);

	content = make_content(&choices, ACTIVATION_GELU_ERF);
	facts = write_and_read(&content);
	check_value(&facts->inputs[2], 7, "token_type_ids", DIMENSIONS("batch", "choices", "sequence"));
	check_value(&facts->outputs[0], 1, "logits", DIMENSIONS("batch", "choices"));
	release(facts);
	drop_content(&content);

	content = make_content(&relations, ACTIVATION_GELU_ERF);
	facts = write_and_read(&content);
	assert_int_equal(facts->input_count, 4);
	check_value(&facts->inputs[3], 7, "entity_positions", DIMENSIONS("batch", "2"));
	check_value(&facts->outputs[0], 1, "logits", DIMENSIONS("batch", "3"));
	release(facts);
	drop_content(&content);
}

/* The parts that only this form has: no biases, one tensor for query, key, and value, rotary positions, windows. */
static void modernbert(void **state)
{
	const struct model_heads classes = {
		.architecture = "BertForSequenceClassification",
		.count = 1,
		.head = {{.input = INPUT_FIRST_ROW, .pooled = true, .outputs = 5, .loss = LOSS_CLASSES, .name = "classifier"}}};
	struct model_config config = sizes(ACTIVATION_GELU_ERF);
	config.num_hidden_layers = 3;
	assert_ok(model_config_take_form(&config, "modernbert", 0));
	struct onnx_model_content content = make_content_of(&config, &model_heads_words);
	struct facts *facts = write_and_read(&content);
	assert_int_equal(facts->input_count, 2);
	assert_int_equal(facts->output_count, 1);
	check_value(&facts->outputs[0], 1, "logits", DIMENSIONS("batch", "sequence", "12"));
	assert_int_equal(facts->erf, 4);
	assert_true(is_made(facts, "/window/mask"));
	assert_true(is_made(facts, "/global/cos"));
	assert_true(is_made(facts, "/local/cos"));
	release(facts);
	drop_content(&content);

	config.num_hidden_layers = 1;
	config.mean_pooling = true;
	content = make_content_of(&config, &classes);
	facts = write_and_read(&content);
	check_value(&facts->outputs[0], 1, "logits", DIMENSIONS("batch", "5"));
	assert_false(is_made(facts, "/window/mask"));
	assert_true(is_made(facts, "/pooling/head"));
	release(facts);
	drop_content(&content);
}

/* A model too large for one file, simulated with a small limit. */
static void weights_apart(void **state)
{
	struct onnx_model_content content = make_content(&model_heads_pretraining, ACTIVATION_GELU_ERF);
	struct buffer data = {0};
	assert_ok(onnx_model_write(test_path("whole.onnx"), &content, ONNX_FILE_LIMIT));
	int64_t whole = file_size(test_path("whole.onnx"));
	assert_ok(onnx_model_write(test_path("fits.onnx"), &content, whole));
	assert_false(file_exists(test_path("fits.onnx_data")));
	assert_ok(onnx_model_write(test_path("apart.onnx"), &content, whole / 2));
	assert_ok(file_read(test_path("apart.onnx_data"), 1 << 24, &data));
	struct facts *facts = read_model(test_path("apart.onnx"));
	check_weights(facts, &content, &data);
	release(facts);
	buffer_release(&data);
	drop_content(&content);
}

static void full_disk(void **state)
{
	struct onnx_model_content content = make_content(&model_heads_none, ACTIVATION_GELU_ERF);
	assert_ok(file_fault_set("write:1:ENOSPC"));
	assert_error(ERR_RESOURCE, "full.onnx", onnx_model_write(test_path("full.onnx"), &content, ONNX_FILE_LIMIT));
	assert_ok(file_fault_set(NULL));
	assert_false(file_exists(test_path("full.onnx")));
	drop_content(&content);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(masked_words),   cmocka_unit_test(encoder_with_every_pooling),
		cmocka_unit_test(heads_of_tasks), cmocka_unit_test(modernbert),
		cmocka_unit_test(weights_apart),  cmocka_unit_test(full_disk),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
