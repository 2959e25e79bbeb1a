/* `bertc compare` for two models: tensor by tensor in the order of the data flow, and the settings that differ. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cmd/compare.h"
#include "formats/weights_file.h"
#include "weights/manifest.h"
#include "weights/model_folder.h"

enum tensor_verdict { TENSOR_SAME, TENSOR_DIFFERS, TENSOR_SHAPE, TENSOR_TYPE, TENSOR_ONLY_A, TENSOR_ONLY_B };
static const char *const verdict_names[] = {"equal", "differs", "other shape", "other type", "only in A", "only in B"};

struct tensor_result {
	const struct stored_tensor *a, *b; /* NULL where missing */
	enum tensor_verdict verdict;
	int64_t first, different; /* index of the first different element; number of different elements */
	double first_a, first_b;
	double max, rms, rms_a; /* of the differences; rms_a: of A */
};

/* Position of a tensor in the data flow: embeddings, layer after layer, pooler, heads; then moments and averages, after all
 * weights. */
static int64_t flow_rank(const char *name)
{
	static const char *const parts[] = {
		"embeddings.word", "embeddings.position",   "embeddings.token_type", "embeddings",       "encoder",
		"pooler",          "predictions.transform", "predictions",           "seq_relationship",
	};
	static const char *const in_layer[] = {
		"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
		"attention.output",     "intermediate",       "output.dense",         "output",
	};
	int64_t rank = strncmp(name, "exp_avg_sq.", 11) == 0 ? 2
		       : strncmp(name, "exp_avg.", 8) == 0   ? 1
		       : strncmp(name, "average.", 8) == 0   ? 3
							     : 0;
	size_t part = 0, within = 0;
	const char *layer = strstr(name, "layer.");
	while (part < sizeof parts / sizeof *parts && !strstr(name, parts[part]))
		part++;
	while (layer && within < sizeof in_layer / sizeof *in_layer && !strstr(name, in_layer[within]))
		within++;
	rank = rank * 16 + (int64_t)part;
	rank = rank * 100000 + (layer ? strtoll(layer + 6, NULL, 10) % 100000 : 0);
	return rank * 16 + (int64_t)within;
}

static int by_flow(const void *left, const void *right)
{
	const struct tensor_result *a = left, *b = right;
	const char *name_a = (a->a ? a->a : a->b)->name, *name_b = (b->a ? b->a : b->b)->name;
	int64_t rank_a = flow_rank(name_a), rank_b = flow_rank(name_b);
	if (rank_a != rank_b)
		return rank_a < rank_b ? -1 : 1;
	/* A weight before its bias. */
	bool bias_a = strstr(name_a, ".bias") != NULL, bias_b = strstr(name_b, ".bias") != NULL;
	return bias_a != bias_b ? (bias_a ? 1 : -1) : strcmp(name_a, name_b);
}

/* Elements processed at a time. */
#define BLOCK 65536

/* The address of an element, counted in row-major order. */
static const unsigned char *element_at(const struct stored_tensor *tensor, int64_t element)
{
	int64_t place = 0;
	for (int k = tensor->rank; k-- > 0; element /= tensor->shape[k])
		place += element % tensor->shape[k] * tensor->strides[k];
	return tensor->data + place * dtype_element_bytes(tensor->dtype);
}

/* Elements of a tensor as doubles, in row-major order. */
static enum status read_block(const struct stored_tensor *tensor, int64_t first, int64_t count, float *scratch, double *out)
{
	if (tensor->dtype != ST_F64) {
		TRY(stored_tensor_read(tensor, first, count, scratch));
		for (int64_t i = 0; i < count; i++)
			out[i] = scratch[i];
		return OK;
	}
	for (int64_t i = 0; i < count; i++)
		memcpy(&out[i], element_at(tensor, first + i), sizeof *out);
	return OK;
}

static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static enum status compare_values(struct tensor_result *result)
{
	int64_t count = result->a->count;
	double *a = NULL, *b = NULL, squares = 0, squares_a = 0;
	float *scratch = NULL;
	enum status status = OK;
	TRY_GOTO(memory_new(&a, BLOCK, sizeof *a, "tensor"), done);
	TRY_GOTO(memory_new(&b, BLOCK, sizeof *b, "tensor"), done);
	TRY_GOTO(memory_new(&scratch, BLOCK, sizeof *scratch, "tensor"), done);
	for (int64_t first = 0; first < count; first += BLOCK) {
		int64_t size = count - first < BLOCK ? count - first : BLOCK;
		TRY_GOTO(read_block(result->a, first, size, scratch, a), done);
		TRY_GOTO(read_block(result->b, first, size, scratch, b), done);
		for (int64_t i = 0; i < size; i++) {
			squares_a += a[i] * a[i];
			if (same_number(a[i], b[i]))
				continue;
			double difference = fabs(a[i] - b[i]);
			if (result->different++ == 0) {
				result->first = first + i;
				result->first_a = a[i];
				result->first_b = b[i];
			}
			if (!(difference <= result->max)) /* NaN counts as the largest */
				result->max = isnan(result->max) ? result->max : difference;
			squares += difference * difference;
		}
	}
	result->rms = count ? sqrt(squares / (double)count) : 0;
	result->rms_a = count ? sqrt(squares_a / (double)count) : 0;
	result->verdict = result->different ? TENSOR_DIFFERS : TENSOR_SAME;
done:
	free(a);
	free(b);
	free(scratch);
	return status;
}

/* Integers, for which no distances are computed: equal or not. */
static void compare_elements(struct tensor_result *result)
{
	size_t size = (size_t)dtype_element_bytes(result->a->dtype);
	result->verdict = TENSOR_SAME;
	for (int64_t i = 0; i < result->a->count; i++)
		if (memcmp(element_at(result->a, i), element_at(result->b, i), size) != 0 && result->different++ == 0) {
			result->verdict = TENSOR_DIFFERS;
			result->first = i;
			result->first_a = result->first_b = result->max = result->rms = result->rms_a = NAN;
		}
}

static enum status compare_tensor(struct tensor_result *result)
{
	const struct stored_tensor *a = result->a, *b = result->b;
	if (!a || !b) {
		result->verdict = a ? TENSOR_ONLY_A : TENSOR_ONLY_B;
		return OK;
	}
	TRY(stored_tensor_verify(a));
	TRY(stored_tensor_verify(b));
	if (a->rank != b->rank || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) != 0)
		result->verdict = TENSOR_SHAPE;
	else if (stored_tensor_is_real(a) && stored_tensor_is_real(b))
		return compare_values(result);
	else if (a->dtype != b->dtype)
		result->verdict = TENSOR_TYPE;
	else
		compare_elements(result);
	return OK;
}

/* All tensors of both files, in the order of the data flow. */
struct tensor_results {
	struct tensor_result *items;
	int64_t count, capacity;
	struct weights_file a[2], b[2]; /* weights; optimizer state, if both have it */
	int file_count;
};

static enum status add_result(struct tensor_results *results, const struct stored_tensor *a, const struct stored_tensor *b)
{
	TRY(memory_grow(&results->items, &results->capacity, results->count + 1, sizeof *results->items, "tensors"));
	results->items[results->count++] = (struct tensor_result){.a = a, .b = b};
	return OK;
}

static enum status compare_files(struct tensor_results *results, const char *path_a, const char *path_b)
{
	struct weights_file *a = &results->a[results->file_count], *b = &results->b[results->file_count];
	int64_t first = results->count;
	TRY(manifest_verify_file(path_a));
	TRY(manifest_verify_file(path_b));
	TRY(weights_file_open(a, path_a));
	enum status status = weights_file_open(b, path_b);
	if (status != OK) {
		weights_file_close(a);
		return status;
	}
	results->file_count++;
	for (int64_t i = 0; i < a->count; i++)
		TRY(add_result(results, &a->tensors[i], weights_file_tensor(b, a->tensors[i].name)));
	for (int64_t i = 0; i < b->count; i++)
		if (!weights_file_tensor(a, b->tensors[i].name))
			TRY(add_result(results, NULL, &b->tensors[i]));
	for (int64_t i = first; i < results->count; i++)
		TRY(compare_tensor(&results->items[i]));
	return OK;
}

static void release(struct tensor_results *results)
{
	for (int i = 0; i < results->file_count; i++) {
		weights_file_close(&results->a[i]);
		weights_file_close(&results->b[i]);
	}
	free(results->items);
}

static const char *name_of(const struct tensor_result *result)
{
	return (result->a ? result->a : result->b)->name;
}

/* "3,17": the index of an element. */
static void index_text(char *out, size_t size, const struct stored_tensor *entry, int64_t element)
{
	int64_t place[8];
	size_t used = 0;
	for (int k = entry->rank; k-- > 0;) {
		place[k] = element % entry->shape[k];
		element /= entry->shape[k];
	}
	out[0] = 0;
	for (int k = 0; k < entry->rank && used < size; k++)
		used += (size_t)snprintf(out + used, size - used, "%s%" PRId64, k ? "," : "", place[k]);
}

#define ROWS_SHOWN 40
static void print_results(const struct tensor_results *results, const struct tensor_result *first, int64_t different)
{
	char place[160];
	if (!first) {
		printf("all %" PRId64 " tensors are equal\n", results->count);
		return;
	}
	printf("%" PRId64 " of %" PRId64 " tensors differ\n", different, results->count);
	if (first->verdict == TENSOR_DIFFERS) {
		index_text(place, sizeof place, first->a, first->first);
		printf("first: %s[%s]  %.9g  %.9g\n", TEXT_SHOWN(name_of(first)), place, first->first_a, first->first_b);
	} else {
		printf("first: %s, %s\n", TEXT_SHOWN(name_of(first)), verdict_names[first->verdict]);
	}
	printf("\n  %-58s %11s %11s %9s\n", "tensor", "largest", "rms", "of A's");
	int64_t shown = 0;
	for (int64_t i = 0; i < results->count; i++) {
		const struct tensor_result *result = &results->items[i];
		if (result->verdict == TENSOR_SAME)
			continue;
		if (shown++ == ROWS_SHOWN) {
			printf("  ... and %" PRId64 " more (--json has all)\n", different - ROWS_SHOWN);
			break;
		}
		if (result->verdict == TENSOR_DIFFERS)
			printf("  %-58s %11.3e %11.3e %9.1e\n", TEXT_SHOWN(name_of(result)), result->max, result->rms,
			       result->rms_a > 0 ? result->rms / result->rms_a : NAN);
		else
			printf("  %-58s %s\n", TEXT_SHOWN(name_of(result)), verdict_names[result->verdict]);
	}
}

static void put_results(const struct tensor_results *results, const struct tensor_result *first, int64_t different,
			struct json_writer *writer)
{
	char place[160];
	json_put_integer(writer, "tensor_count", results->count);
	json_put_integer(writer, "different_tensors", different);
	if (first) {
		json_open(writer, "first", '{');
		json_put_string(writer, "name", name_of(first));
		json_put_string(writer, "verdict", verdict_names[first->verdict]);
		if (first->verdict == TENSOR_DIFFERS) {
			index_text(place, sizeof place, first->a, first->first);
			json_put_string(writer, "index", place);
			json_put_double(writer, "a", first->first_a);
			json_put_double(writer, "b", first->first_b);
		}
		json_close(writer);
	}
	json_open(writer, "tensors", '[');
	for (int64_t i = 0; i < results->count; i++) {
		const struct tensor_result *result = &results->items[i];
		json_open(writer, NULL, '{');
		json_put_string(writer, "name", name_of(result));
		json_put_string(writer, "verdict", verdict_names[result->verdict]);
		if (result->verdict == TENSOR_DIFFERS) {
			json_put_integer(writer, "different_elements", result->different);
			json_put_double(writer, "max", result->max);
			json_put_double(writer, "rms", result->rms);
			json_put_double(writer, "rms_a", result->rms_a);
		}
		json_close(writer);
	}
	json_close(writer);
}

/* The weights file that a path stands for and, if the path is a folder, the folder that contains it. */
static enum status find_weights(const char *path, char weights[PATH_BYTES], char folder[PATH_BYTES])
{
	struct model_source source;
	TRY(model_source_find(path, &source));
	memcpy(weights, source.weights, PATH_BYTES);
	folder[0] = 0;
	char *slash = strrchr(source.weights, '/');
	if (file_is_folder(path) && slash) {
		char modules[PATH_BYTES];
		*slash = 0;
		TRY(path_join(modules, path, "modules.json"));
		snprintf(folder, PATH_BYTES, "%s", file_exists(modules) ? path : source.weights);
	}
	return OK;
}

/* Files of a model folder that say nothing about the model, or are compared in another way. */
static bool is_aside(const char *name)
{
	static const char *const names[] = {MANIFEST_NAME, "training_state.json"}, *const ends[] = {".safetensors",
												    ".safetensors.index.json",
												    ".bin",
												    ".bin.index.json",
												    ".pt",
												    ".onnx",
												    ".onnx_data",
												    ".md",
												    ".ckpt"};
	bool aside = name[0] == '.' || text_has_ending(name, ends, sizeof ends / sizeof *ends) || strstr(name, ".ckpt.");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		aside |= strcmp(name, names[i]) == 0;
	return aside;
}

/* Adds the files in `folder` and the folders in it, whose modules sentence-transformers keeps there. */
static enum status list_files(const char *folder, const char *within, struct name_list *out)
{
	struct name_list names = {0};
	enum status status;
	char path[PATH_BYTES], name[PATH_BYTES];
	TRY_GOTO(path_join(path, folder, within), done);
	TRY_GOTO(folder_list(path, &names), done);
	for (int64_t i = 0; i < names.count; i++) {
		if (is_aside(names.names[i]))
			continue;
		if (*within)
			TRY_GOTO(path_join(name, within, names.names[i]), done);
		else
			snprintf(name, sizeof name, "%s", names.names[i]);
		TRY_GOTO(path_join(path, folder, name), done);
		if (!file_is_folder(path))
			TRY_GOTO(name_list_add(out, name), done);
		else if (!*within)
			TRY_GOTO(list_files(folder, name, out), done);
	}
done:
	name_list_release(&names);
	return status;
}

/* Adds the files of `more` that `list` does not have. */
static enum status add_missing(const struct name_list *more, struct name_list *list)
{
	for (int64_t i = 0; i < more->count; i++) {
		bool listed = false;
		for (int64_t k = 0; k < list->count && !listed; k++)
			listed = strcmp(list->names[k], more->names[i]) == 0;
		if (!listed)
			TRY(name_list_add(list, more->names[i]));
	}
	return OK;
}

static enum status compare_bytes(const char *name, const char *left, const char *right, struct compare_differences *settings)
{
	struct file_map a, b;
	TRY(file_map_open(&a, left));
	enum status status = file_map_open(&b, right);
	if (status == OK) {
		if (a.size != b.size || memcmp(a.data, b.data, a.size) != 0) {
			status = compare_note(name, "its own", "another", settings);
			if (strcmp(name, "vocab.txt") == 0)
				log_warning("the models have different vocabularies: equal rows of their word embeddings belong "
					    "to different tokens");
		}
		file_map_close(&b);
	}
	file_map_close(&a);
	return status;
}

/* Everything in the folder is part of the model: configuration, tokenizer, task, pooling, prompts. A tokenizer may be described
 * in several files, of which a folder may lack one. */
static enum status compare_contents(const char *a, const char *b, struct compare_differences *settings)
{
	static const char *const spares[] = {"vocab.txt", "tokenizer.json", "special_tokens_map.json", "added_tokens.json"};
	struct name_list files = {0}, more = {0};
	char left[PATH_BYTES], right[PATH_BYTES];
	enum status status;
	TRY_GOTO(list_files(a, "", &files), done);
	TRY_GOTO(list_files(b, "", &more), done);
	TRY_GOTO(add_missing(&more, &files), done);
	for (int64_t i = 0; i < files.count; i++) {
		const char *name = files.names[i];
		bool spare = false;
		TRY_GOTO(path_join(left, a, name), done);
		TRY_GOTO(path_join(right, b, name), done);
		bool in_a = file_exists(left), in_b = file_exists(right);
		for (size_t k = 0; k < sizeof spares / sizeof *spares; k++)
			spare |= strcmp(name, spares[k]) == 0;
		if (in_a && in_b && !text_ends_with(name, ".json"))
			TRY_GOTO(compare_bytes(name, left, right, settings), done);
		else if ((in_a && in_b) || strcmp(name, "config.json") == 0 || strcmp(name, "tokenizer_config.json") == 0)
			TRY_GOTO(compare_json_files(left, right, NULL, false, settings), done);
		else if (!spare)
			TRY_GOTO(compare_note(name, in_a ? "there" : "-", in_b ? "there" : "-", settings), done);
	}
done:
	name_list_release(&files);
	name_list_release(&more);
	return status;
}

static enum status compare_folders(const char *a, const char *b, struct tensor_results *results,
				   struct compare_differences *settings)
{
	char left[PATH_BYTES], right[PATH_BYTES];
	TRY(compare_contents(a, b, settings));
	/* A finished model has no training state, so there is nothing to compare then. */
	TRY(path_join(left, a, "training_state.json"));
	TRY(path_join(right, b, "training_state.json"));
	if (file_exists(left) && file_exists(right))
		TRY(compare_json_files(left, right, "settings", true, settings));
	TRY(path_join(left, a, "optimizer.safetensors"));
	TRY(path_join(right, b, "optimizer.safetensors"));
	return file_exists(left) && file_exists(right) ? compare_files(results, left, right) : OK;
}

enum status compare_models(const struct compare_settings *settings, const char *a, const char *b, bool *out_same)
{
	char weights_a[PATH_BYTES], weights_b[PATH_BYTES], folder_a[PATH_BYTES], folder_b[PATH_BYTES];
	struct tensor_results results = {0};
	struct compare_differences differences = {0};
	struct buffer text = {0};
	enum status status;
	TRY_GOTO(find_weights(a, weights_a, folder_a), done);
	TRY_GOTO(find_weights(b, weights_b, folder_b), done);
	TRY_GOTO(compare_files(&results, weights_a, weights_b), done);
	if (*folder_a && *folder_b)
		TRY_GOTO(compare_folders(folder_a, folder_b, &results, &differences), done);
	if (results.count > 0)
		qsort(results.items, (size_t)results.count, sizeof *results.items, by_flow);
	const struct tensor_result *first = NULL;
	int64_t different = 0;
	for (int64_t i = 0; i < results.count; i++)
		if (results.items[i].verdict != TENSOR_SAME && different++ == 0)
			first = &results.items[i];
	*out_same = different == 0 && differences.count == 0;
	if (!settings->json) {
		print_results(&results, first, different);
		compare_print_settings(&differences);
		goto done;
	}
	struct json_writer writer = {.out = &text};
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "kind", "models");
	json_put_bool(&writer, "equal", *out_same);
	put_results(&results, first, different, &writer);
	compare_put_settings(&differences, &writer);
	json_close(&writer);
	TRY_GOTO(buffer_status(&text), done);
	printf("%s\n", buffer_string(&text));
done:
	buffer_release(&text);
	free(differences.items);
	release(&results);
	return status;
}
