/* Matches stored tensors with parameters, adapts their rows, and loads them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/memory.h"
#include "model/forms.h"
#include "text/tokenizer_wordpiece.h"
#include "weights/adapter.h"
#include "weights/finite_values.h"
#include "weights/manifest.h"
#include "weights/model_weights.h"
#include "weights/weight_names.h"
#include "weights/weight_target.h"

/* Padding of vocabularies: NVIDIA's models have multiples of 8 rows, Megatron's multiples of 128. */
#define PADDING_MULTIPLE 8
#define PADDING_LIMIT 128

/* Maximum pieces of a new token. */
#define MOST_PIECES 32

struct loader {
	const char *path;
	const struct model *model;
	const struct weight_adaptation *adaptation;
	struct weight_target target;
	struct model_folder_report *report;
	const struct stored_tensor **found; /* [parameter_count] the tensor that each was loaded from; NULL: none yet */
	int64_t *source_rows; /* [vocab->count] each token's row in the file, or -1; NULL without another vocabulary */
	int32_t (
		*pieces)[MOST_PIECES]; /* [vocab->count] the pieces of a token without a row, as rows of the file; NULL: random */
	int32_t *piece_count;          /* [vocab->count] 0: none */
	bool has_decoder_bias;         /* the file names the output layer's bias as such */
	struct adapter adapter;        /* merged into the weights */
	const struct file_map *map;    /* of a single file, which is verified while it is read; NULL otherwise */
	struct file_check check;
};

/* A parameter in the shape that the file should have, rows first; a vector counts as rows of one number each. */
struct wanted {
	const struct parameter *parameter;
	int64_t rows, columns;
	bool transposed, is_vocabulary, is_positions, is_classes;
};

void model_folder_report_release(struct model_folder_report *report)
{
	name_list_release(&report->missing);
	name_list_release(&report->unused);
	name_list_release(&report->optimizer);
	name_list_release(&report->others);
	name_list_release(&report->names);
}

static struct wanted wanted_of(const struct parameter *parameter, bool transposed)
{
	bool vector = parameter_rank(parameter) == 1;
	return (struct wanted){
		.parameter = parameter,
		.rows = vector ? parameter->columns : parameter->rows,
		.columns = vector ? 1 : parameter->columns,
		.transposed = transposed && !vector,
		.is_vocabulary = strcmp(parameter->name, WORD_EMBEDDINGS) == 0 || strcmp(parameter->name, PREDICTION_BIAS) == 0 ||
				 strcmp(parameter->name, DECODER_WEIGHT) == 0,
		.is_positions = strcmp(parameter->name, POSITION_EMBEDDINGS) == 0,
		.is_classes = strcmp(parameter->name, CLASSIFIER_WEIGHT) == 0 || strcmp(parameter->name, CLASSIFIER_BIAS) == 0,
	};
}

/* ---- Shapes ---- */

static enum status wrong_shape(const struct stored_tensor *tensor, const struct wanted *wanted)
{
	char theirs[SHAPE_TEXT_BYTES], ours[SHAPE_TEXT_BYTES];
	int rank = parameter_rank(wanted->parameter);
	int64_t shape[2] = {wanted->rows, wanted->columns}, turned[2] = {wanted->columns, wanted->rows};
	shape_text(theirs, tensor->rank, tensor->shape);
	shape_text(ours, rank, wanted->transposed ? turned : shape);
	enum status status = error_set(ERR_STATE, "'%s': tensor '%.200s' has shape %s where the model's '%s' needs %s",
				       tensor->path, tensor->name, theirs, wanted->parameter->name, ours);
	if (wanted->is_vocabulary)
		error_hint("use the vocabulary that belongs to these weights, or carry its rows over to another one (pretrain "
			   "--remap_vocab)");
	else if (wanted->is_positions)
		error_hint("keep max_position_embeddings, or say where more rows come from (pretrain "
			   "--init_positions)");
	else if (wanted->is_classes)
		error_hint("the head of these weights has other classes: give the labels it was trained with, or use a new head");
	else
		error_hint("use the configuration that belongs to these weights");
	return status;
}

static int32_t largest_class_row(const struct weight_adaptation *adaptation)
{
	int32_t largest = 0;
	for (int32_t i = 0; i < adaptation->class_count; i++)
		largest = adaptation->class_rows[i] > largest ? adaptation->class_rows[i] : largest;
	return largest;
}

/* Whether the number of rows in the file fits the parameter; a vocabulary may have padding at its end. */
static bool rows_fit(const struct loader *loader, const struct wanted *wanted, int64_t rows)
{
	if (wanted->is_vocabulary && loader->source_rows)
		return rows >= loader->adaptation->source_vocab->count;
	if (wanted->is_vocabulary && rows > wanted->rows)
		return rows % PADDING_MULTIPLE == 0 && rows - wanted->rows < PADDING_LIMIT;
	if (wanted->is_positions && loader->adaptation->positions != POSITIONS_SAME)
		return rows > 0;
	if (wanted->is_classes && loader->adaptation->class_rows)
		return rows > largest_class_row(loader->adaptation);
	return rows == wanted->rows;
}

static enum status check_shape(const struct loader *loader, const struct stored_tensor *tensor, const struct wanted *wanted,
			       int64_t *out_rows)
{
	bool matrix = parameter_rank(wanted->parameter) == 2, turned = wanted->transposed;
	if (tensor->rank != (matrix ? 2 : 1))
		return wrong_shape(tensor, wanted);
	int64_t rows = tensor->shape[turned ? 1 : 0], columns = matrix ? tensor->shape[turned ? 0 : 1] : 1;
	if (columns != wanted->columns || !rows_fit(loader, wanted, rows))
		return wrong_shape(tensor, wanted);
	*out_rows = rows;
	return OK;
}

/* ---- Values ---- */

static void transpose(const float *from, int64_t rows, int64_t columns, float *to)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			to[i * columns + j] = from[j * rows + i];
}

/* The mean of the rows of a new token's pieces. */
static void compose_token(const struct loader *loader, int64_t token, int64_t columns, const float *from, float *to)
{
	int32_t count = loader->piece_count[token];
	for (int64_t j = 0; j < columns; j++) {
		double sum = 0;
		for (int32_t k = 0; k < count; k++)
			sum += from[loader->pieces[token][k] * columns + j];
		to[token * columns + j] = (float)(sum / count);
	}
}

/* Carries over the rows of tokens in both vocabularies, and composes those of new tokens from their pieces. The output bias of
 * drawn tokens becomes the mean, so that they are neither favored nor excluded at first: a trained model's biases are far from
 * the 0 that a new model starts with. */
static void carry_tokens(struct loader *loader, const struct wanted *wanted, const float *from, float *to)
{
	double sum = 0;
	int64_t carried = 0, composed = 0, count = loader->adaptation->vocab->count;
	bool is_bias = wanted->columns == 1;
	for (int64_t i = 0; i < count; i++) {
		int64_t row = loader->source_rows[i];
		if (row < 0 && loader->piece_count && loader->piece_count[i] > 0) {
			compose_token(loader, i, wanted->columns, from, to);
			composed++;
		}
		if (row < 0)
			continue;
		memcpy(to + i * wanted->columns, from + row * wanted->columns, (size_t)wanted->columns * sizeof *to);
		sum += from[row * wanted->columns];
		carried++;
	}
	for (int64_t i = 0; is_bias && carried && i < count; i++)
		if (loader->source_rows[i] < 0 && !(loader->piece_count && loader->piece_count[i] > 0))
			to[i] = (float)(sum / (double)carried);
	loader->report->carried_tokens = carried;
	loader->report->composed_tokens = composed;
	loader->report->drawn_tokens = count - carried - composed;
}

/* Copies the rows of the classes in the model's order. */
static void place_classes(const struct weight_adaptation *adaptation, const struct wanted *wanted, const float *from, float *to)
{
	BUG_IF(adaptation->class_count != wanted->rows);
	for (int64_t i = 0; i < wanted->rows; i++)
		memcpy(to + i * wanted->columns, from + adaptation->class_rows[i] * wanted->columns,
		       (size_t)wanted->columns * sizeof *to);
}

/* Copies the rows that both have, and repeats the file's positions if requested. */
static void place_rows(struct loader *loader, const struct wanted *wanted, int64_t rows, const float *from, float *to)
{
	int64_t common = rows < wanted->rows ? rows : wanted->rows;
	memcpy(to, from, (size_t)(common * wanted->columns) * sizeof *to);
	int64_t first = model_first_position(&loader->model->config);
	if (wanted->is_positions && loader->adaptation->positions == POSITIONS_TILE && rows > first)
		for (int64_t i = rows; i < wanted->rows; i++)
			memcpy(to + i * wanted->columns, from + (first + (i - first) % (rows - first)) * wanted->columns,
			       (size_t)wanted->columns * sizeof *to);
	if (wanted->is_vocabulary)
		loader->report->padding_rows = rows - common;
	if (wanted->is_positions && rows != wanted->rows)
		loader->report->positions_source = rows;
}

/* Puts the tensor's values, in the model's layout, into `to`, which holds the model's previous values. */
static enum status adapt(struct loader *loader, const struct stored_tensor *tensor, const struct wanted *wanted, int64_t rows,
			 float *to)
{
	const struct weight_adaptation *adaptation = loader->adaptation;
	bool remapped = wanted->is_vocabulary && loader->source_rows, classes = wanted->is_classes && adaptation->class_rows;
	float *from = NULL;
	if (!wanted->transposed && !remapped && !classes && rows == wanted->rows)
		return stored_tensor_read(tensor, 0, tensor->count, to);
	TRY(memory_new(&from, tensor->count, sizeof *from, "values of a tensor"));
	enum status status = stored_tensor_read(tensor, 0, tensor->count, from);
	if (status != OK)
		; /* nothing to place */
	else if (wanted->transposed)
		transpose(from, rows, wanted->columns, to);
	else if (remapped)
		carry_tokens(loader, wanted, from, to);
	else if (classes)
		place_classes(adaptation, wanted, from, to);
	else
		place_rows(loader, wanted, rows, from, to);
	free(from);
	return status;
}

/* NaN and infinities would spread to everything computed from them. */
static enum status check_finite(const struct stored_tensor *tensor, const struct wanted *wanted, const float *values)
{
	int64_t at = first_not_finite(values, DTYPE_F32, wanted->parameter->count);
	return at < 0 ? OK
		      : tensor_not_finite(tensor, (double)values[at], at / wanted->columns, at % wanted->columns,
					  wanted->parameter->name);
}

/* Whether a tensor that weight_target_takes() accepts is finite. The scales of int8 tensors were checked when the file was
 * opened. */
static bool is_finite(const struct stored_tensor *tensor)
{
	static const enum dtype dtypes[] = {[ST_F32] = DTYPE_F32, [ST_F16] = DTYPE_F16, [ST_BF16] = DTYPE_BF16};
	return tensor->row_scales || first_not_finite(tensor->data, dtypes[tensor->dtype], tensor->count) < 0;
}

static enum status read_parameter(struct loader *loader, const struct stored_tensor *tensor, const struct wanted *wanted,
				  int64_t rows, int64_t number)
{
	float *values;
	bool apart = loader->model->adapted_count > 0;
	const struct adapter_addition *addition = apart ? NULL : adapter_find(&loader->adapter, wanted->parameter->name);
	if (!wanted->transposed && !loader->source_rows && !loader->adaptation->class_rows && !addition &&
	    weight_target_takes(&loader->target, number, tensor) && is_finite(tensor))
		return weight_target_take(&loader->target, number, tensor);
	TRY(weight_target_values(&loader->target, number, &values));
	TRY(adapt(loader, tensor, wanted, rows, values));
	if (addition)
		TRY(adapter_add(&loader->adapter, addition, wanted->rows, wanted->columns, values));
	TRY(check_finite(tensor, wanted, values));
	weight_target_put(&loader->target, number, values);
	return OK;
}

/* Checks that a parameter stored under two names has the same values both times. */
static enum status compare_parameter(struct loader *loader, const struct stored_tensor *tensor, const struct wanted *wanted,
				     int64_t rows, int64_t number)
{
	const struct stored_tensor *first = loader->found[number];
	const struct wanted before = wanted_of(wanted->parameter, tensor_name_from(first->name).transposed);
	int64_t count = wanted->parameter->count, first_rows = 0;
	float *values = NULL, *again = NULL;
	enum status status;
	TRY_GOTO(memory_new(&again, count, sizeof *again, "values of a tensor"), done);
	TRY_GOTO(memory_new(&values, count, sizeof *values, "values of a tensor"), done);
	if (loader->target.slab)
		memcpy(values, loader->target.slab + wanted->parameter->offset, (size_t)count * sizeof *values);
	memcpy(again, values, (size_t)count * sizeof *again);
	if (!loader->target.slab) {
		TRY_GOTO(check_shape(loader, first, &before, &first_rows), done);
		TRY_GOTO(adapt(loader, first, &before, first_rows, values), done);
	}
	TRY_GOTO(adapt(loader, tensor, wanted, rows, again), done);
	if (memcmp(again, values, (size_t)count * sizeof *again) != 0)
		status = error_hinted(
			error_set(ERR_STATE, "'%s': tensors '%.200s' and '%.200s' are one weight in a BERT but differ",
				  loader->path, first->name, tensor->name),
			"if the output layer has weights of its own, \"tie_word_embeddings\" in config.json must be false");
done:
	free(values);
	free(again);
	return status;
}

/* Whether a tensor is from the adapter's file, and thus takes the place of the base's. */
static bool is_adapters(const struct loader *loader, const struct stored_tensor *tensor)
{
	const struct weights_file *file = &loader->adapter.file;
	return tensor >= file->tensors && tensor < file->tensors + file->count;
}

static enum status load_parameter(struct loader *loader, const struct stored_tensor *tensor, int64_t number, bool transposed)
{
	struct wanted wanted = wanted_of(&loader->model->parameters[number], transposed);
	int64_t rows = 0;
	if (loader->found[number] && is_adapters(loader, loader->found[number]))
		return OK;
	TRY(check_shape(loader, tensor, &wanted, &rows));
	bool of_map = loader->map && !is_adapters(loader, tensor);
	if (of_map)
		file_check_advance(&loader->check, loader->map,
				   (int64_t)tensor->offset + tensor->count * dtype_element_bytes(tensor->dtype));
	TRY(stored_tensor_verify(tensor));
	if (loader->found[number])
		return compare_parameter(loader, tensor, &wanted, rows, number);
	loader->found[number] = tensor;
	loader->report->loaded++;
	if (wanted.is_vocabulary && wanted.columns > 1)
		loader->report->dtype = tensor->dtype;
	TRY(read_parameter(loader, tensor, &wanted, rows, number));
	if (of_map) /* the model has its own copy, so weights need not be in memory twice */
		file_map_drop(loader->map, tensor->data, (size_t)(tensor->count * dtype_element_bytes(tensor->dtype)));
	return OK;
}

/* ---- Names ---- */

static enum status note_name(struct loader *loader, const char *ours, const char *theirs)
{
	char line[512];
	snprintf(line, sizeof line, "%.200s = %.300s", ours, theirs);
	return name_list_add(&loader->report->names, line);
}

static bool starts_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Whether a parameter keeps what the slab holds. */
static bool is_fresh(const struct loader *loader, const char *name)
{
	for (const char *const *fresh = loader->adaptation->fresh; fresh && *fresh; fresh++)
		if (starts_with(name, *fresh))
			return true;
	return false;
}

/* Whether a name belongs to the part that every BERT has, as opposed to a pooler or a head. */
static bool is_of_encoder(const char *name)
{
	return (starts_with(name, "bert.") && !starts_with(name, "bert.pooler.")) || starts_with(name, "bert/");
}

/* What a stored tensor is to the model. The output layer of masked words is the table of word embeddings with a bias that files
 * have under either of two names; if an untied model's file has both, transformers computes with the decoder's. */
static struct tensor_name name_in_model(const struct loader *loader, const char *stored)
{
	struct tensor_name name = tensor_name_from(stored);
	bool untied = loader->model->config.untied;
	if (strcmp(name.name, PREDICTION_BIAS) == 0 && untied && loader->has_decoder_bias)
		name.meaning = MEANS_BUFFER;
	else if (strcmp(name.name, DECODER_BIAS) == 0)
		snprintf(name.name, sizeof name.name, "%s", PREDICTION_BIAS);
	else if (strcmp(name.name, DECODER_WEIGHT) == 0 && !untied)
		snprintf(name.name, sizeof name.name, "%s", WORD_EMBEDDINGS);
	return name;
}

static enum status load_tensor(struct loader *loader, const struct stored_tensor *tensor)
{
	struct tensor_name name = name_in_model(loader, tensor->name);
	struct model_folder_report *report = loader->report;
	if (name.meaning == MEANS_OPTIMIZER)
		return name_list_add(&report->optimizer, tensor->name);
	if (name.meaning != MEANS_PARAMETER)
		return name_list_add(&report->others, tensor->name);
	int64_t number = model_find_parameter(loader->model, name.name);
	if (number >= 0 && !is_fresh(loader, name.name)) {
		TRY(note_name(loader, name.name, tensor->name));
		return load_parameter(loader, tensor, number, name.transposed);
	}
	if (number >= 0 || !is_of_encoder(name.name))
		return name_list_add(&report->unused, tensor->name);
	return error_hinted(error_set(ERR_STATE, "'%s': the model (%d layers) has no tensor '%.200s'", tensor->path,
				      loader->model->config.num_hidden_layers, tensor->name),
			    "use the configuration that belongs to these weights");
}

static bool may_miss(const struct loader *loader, const struct parameter *parameter)
{
	const struct model *model = loader->model;
	enum missing_weights allowed = loader->adaptation->missing;
	if (is_fresh(loader, parameter->name))
		return true;
	if (allowed == MISSING_NOTHING || parameter->layer != model->config.num_hidden_layers)
		return false;
	return allowed == MISSING_HEADS || !starts_with(parameter->name, "cls.predictions.");
}

/* The error for a file without any BERT weights; says what it has instead. */
static enum status nothing_found(const struct loader *loader, const struct weights_file *file)
{
	enum status status = error_set(ERR_STATE, "'%s': none of its %lld tensors belongs to a BERT%s%.200s%s", loader->path,
				       (long long)file->count, file->count ? "; the first is '" : "",
				       file->count ? file->tensors[0].name : "", file->count ? "'" : "");
	if (file->count && strstr(file->tensors[0].name, ".ATTRIBUTES"))
		error_hint("an object-based checkpoint of TensorFlow 2: bertc reads those with names such as "
			   "'bert/encoder/layer_0/attention/self/query/kernel' (google-research/bert)");
	else
		error_hint("bertc knows names like 'bert.encoder.layer.0.attention.self.query.weight' and "
			   "'bert/encoder/layer_0/attention/self/query/kernel'");
	return status;
}

static enum status check_missing(const struct loader *loader, const struct weights_file *file)
{
	const struct model *model = loader->model;
	const struct parameter *first = NULL;
	int64_t refused = 0;
	if (loader->report->loaded == 0)
		return nothing_found(loader, file);
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		if (loader->found[i])
			continue;
		TRY(name_list_add(&loader->report->missing, parameter->name));
		if (may_miss(loader, parameter))
			continue;
		first = first ? first : parameter;
		refused++;
	}
	if (!first)
		return OK;
	enum status status = error_set(ERR_STATE, "'%s': %lld of the model's %lld weights are missing, the first is '%s'",
				       loader->path, (long long)refused, (long long)model->parameter_count, first->name);
	if (first->layer == model->config.num_hidden_layers)
		error_hint("an encoder without its pre-training heads can be trained further (pretrain --init_checkpoint), but "
			   "cannot predict words");
	else
		error_hint("use the configuration that belongs to these weights, and all files of them");
	return status;
}

/* ---- Another vocabulary ---- */

/* Entries in brackets, such as "[unused7]", are not words and must not be split into pieces. */
static bool has_pieces(const char *text)
{
	return text[0] != '[' || text[1] == '\0';
}

static enum status cut_tokens(struct loader *loader)
{
	const struct vocab *vocab = loader->adaptation->vocab;
	struct wordpiece wordpiece;
	TRY(memory_new(&loader->pieces, vocab->count, sizeof *loader->pieces, "pieces of tokens"));
	TRY(memory_new(&loader->piece_count, vocab->count, sizeof *loader->piece_count, "pieces of tokens"));
	TRY(wordpiece_init(&wordpiece, loader->adaptation->source_vocab));
	for (int32_t i = 0; i < vocab->count; i++)
		if (loader->source_rows[i] < 0 && has_pieces(vocab->text[i]))
			loader->piece_count[i] =
				wordpiece_cut(&wordpiece, vocab->text[i], vocab->size[i], loader->pieces[i], MOST_PIECES);
	wordpiece_release(&wordpiece);
	return OK;
}

static enum status map_tokens(struct loader *loader)
{
	const struct vocab *vocab = loader->adaptation->vocab, *source = loader->adaptation->source_vocab;
	if (!vocab)
		return OK;
	TRY(memory_new(&loader->source_rows, vocab->count, sizeof *loader->source_rows, "rows of tokens"));
	for (int32_t i = 0; i < vocab->count; i++)
		loader->source_rows[i] = vocab_find(source, vocab->text[i], vocab->size[i]);
	return loader->adaptation->tokens == TOKENS_MEAN ? cut_tokens(loader) : OK;
}

/* Rounded weights are not exactly those that were trained; users who continue training with them should know. */
static void tell_rounded(const struct loader *loader, const struct weights_file *file)
{
	int64_t rounded = 0;
	for (int64_t i = 0; i < file->count; i++)
		rounded += file->tensors[i].row_scales != NULL;
	if (rounded > 0 && loader->target.slab)
		log_note("'%s': %lld of its weights are rounded to int8, and are converted back to the values they represent",
			 loader->path, (long long)rounded);
}

/* Loads what the adapter has in place of the base's tensors, and checks that all it adds to is there. */
static enum status load_adapter(struct loader *loader, const struct weights_file *base)
{
	const struct adapter *adapter = &loader->adapter;
	TRY(adapter_check_base(adapter, base));
	bool apart = loader->model->adapted_count > 0; /* training goes on with the matrices themselves */
	for (int64_t i = 0; i < adapter->file.count; i++)
		if (apart || adapter_replaces(&adapter->file.tensors[i]))
			TRY(load_tensor(loader, &adapter->file.tensors[i]));
	for (int64_t i = 0; i < adapter->addition_count && !apart; i++) {
		const struct adapter_addition *addition = &adapter->additions[i];
		if (!is_of_encoder(addition->name))
			continue;
		char form[TENSOR_NAME_BYTES];
		tensor_name_to_form(loader->model, addition->name, form);
		if (model_find_parameter(loader->model, addition->name) < 0 || !adapter_names(addition, form))
			return error_hinted(error_set(ERR_STATE, "'%s': '%s' has no weight for '%.200s' to be added to",
						      addition->a->path, loader->path, addition->a->name),
					    "the adapter was trained on another base model");
	}
	return OK;
}

/* Loads every tensor of the open file. */
static enum status load_all(struct loader *loader, const struct weights_file *file)
{
	TRY(memory_new(&loader->found, loader->model->parameter_count, sizeof *loader->found, "weights of a file"));
	TRY(map_tokens(loader));
	if (loader->adapter.config.base[0])
		TRY(load_adapter(loader, file));
	for (int64_t i = 0; i < file->count; i++)
		loader->has_decoder_bias |= strcmp(tensor_name_from(file->tensors[i].name).name, DECODER_BIAS) == 0;
	for (int64_t i = 0; i < file->count; i++)
		TRY(load_tensor(loader, &file->tensors[i]));
	TRY(check_missing(loader, file));
	tell_rounded(loader, file);
	return weight_target_finish(&loader->target);
}

enum status model_weights_load(const char *path, const struct model *model, const struct weight_adaptation *adaptation,
			       float *slab, struct model_folder_report *report)
{
	struct weights_file file = {0};
	struct model_folder_report own = {0};
	struct loader loader = {.model = model, .adaptation = adaptation, .report = report ? report : &own};
	enum status status;
	TRY(weights_file_find(path, loader.report->path));
	TRY_GOTO(adapter_open(&loader.adapter, loader.report->path), done);
	loader.path = loader.adapter.config.base[0] ? loader.adapter.config.base : loader.report->path;
	TRY_GOTO(file_check_begin(&loader.check, loader.path), done);
	status = weights_file_open(&file, loader.path);
	if (status == OK) {
		loader.map = weights_file_map(&file);
		loader.report->format = file.format;
		status = weight_target_open(&loader.target, model, slab);
		if (status == OK)
			status = load_all(&loader, &file);
		weight_target_close(&loader.target);
	}
	status = file_check_end(&loader.check, loader.map, status);
done:
	adapter_close(&loader.adapter);
	free(loader.found);
	free(loader.source_rows);
	free(loader.pieces);
	free(loader.piece_count);
	model_folder_report_release(&own);
	weights_file_close(&file);
	return status;
}
