/* Writes checkpoint, configuration, and vocabulary for Google's code. */
#include "weights/tensorflow_folder.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "formats/tf_bundle_writer.h"
#include "model/forms.h"
#include "weights/weight_names.h"

#define PREFIX "bert_model.ckpt"

/* Google's classifiers read the pooler, or every row: a head that reads something else would get an untrained pooler. */
static enum status check_heads(const struct model_heads *heads)
{
	for (int h = 0; h < heads->count; h++)
		if (heads->head[h].joined > 1 || (heads->head[h].input == INPUT_FIRST_ROW && !heads->head[h].pooled))
			return error_hinted(
				error_set(ERR_USAGE, "Google's code has no head like that of a %s", heads->architecture),
				"--no_head exports the encoder alone");
	return OK;
}

/* Google's code computes BERT only, not with SiLU, and splits texts in BERT's way. */
static enum status check_form(const struct model_config *config, const struct vocab *vocab)
{
	const struct model_form *form = model_form_of(config);
	if (!form->is_googles)
		return error_set(ERR_USAGE, "Google's code has no model of the form \"%s\"", form->model_type);
	if (vocab->chain)
		return error_set(
			ERR_USAGE,
			"Google's code has BERT's tokenizer only, and would split texts in another way than this model's");
	if (config->untied)
		return error_set(ERR_USAGE, "Google's code has no output layer that is not tied to the word embeddings");
	return config->hidden_act != ACTIVATION_SILU ? OK : error_set(ERR_USAGE, "Google's code has no activation \"silu\"");
}

static enum status save_checkpoint(const char *folder, const struct model_folder_content *content, int64_t step)
{
	const struct model *model = content->model;
	struct tf_bundle_entry *entries = NULL;
	struct tensor_name *names = NULL;
	char path[PATH_BYTES];
	enum status status;
	int64_t count = model->parameter_count;
	TRY_GOTO(path_join(path, folder, PREFIX), done);
	TRY_GOTO(memory_new(&entries, count + 1, sizeof *entries, "weights of a checkpoint"), done);
	TRY_GOTO(memory_new(&names, count, sizeof *names, "weights of a checkpoint"), done);
	for (int64_t i = 0; i < count; i++) {
		const struct parameter *p = &model->parameters[i];
		int rank = parameter_rank(p);
		if (!tensor_name_to_google(p->name, &names[i])) {
			status = error_set(ERR_USAGE, "Google's code has no name for '%s'", p->name);
			goto done;
		}
		bool turned = names[i].transposed;
		entries[i] = (struct tf_bundle_entry){
			.name = names[i].name,
			.rank = rank,
			.shape = {rank == 1 || turned ? p->columns : p->rows, turned ? p->rows : p->columns},
			.transposed = turned,
			.data = content->slab + p->offset,
		};
	}
	entries[count] = (struct tf_bundle_entry){.name = "global_step", .is_int64 = true, .data = &step};
	status = tf_bundle_write(path, entries, count + 1);
done:
	free(entries);
	free(names);
	return status;
}

/* Writes Google's members. Google's code has only the tanh form of GELU, and calls it "gelu". For a model with the erf form,
 * "model_type" is added, which Google's code ignores; readers that know both forms recognize by it which one is meant. */
static void put_config(struct json_writer *writer, const struct model_config *config)
{
	json_open(writer, NULL, '{');
	json_put_double(writer, "attention_probs_dropout_prob", model_config_saved_dropout(config, true));
	json_put_string(writer, "hidden_act", config->hidden_act == ACTIVATION_RELU ? "relu" : "gelu");
	json_put_double(writer, "hidden_dropout_prob", model_config_saved_dropout(config, false));
	json_put_integer(writer, "hidden_size", config->hidden_size);
	json_put_double(writer, "initializer_range", config->initializer_range);
	json_put_integer(writer, "intermediate_size", config->intermediate_size);
	json_put_integer(writer, "max_position_embeddings", config->max_position_embeddings);
	if (config->hidden_act == ACTIVATION_GELU_ERF)
		json_put_string(writer, "model_type", "bert");
	json_put_integer(writer, "num_attention_heads", config->num_attention_heads);
	json_put_integer(writer, "num_hidden_layers", config->num_hidden_layers);
	json_put_integer(writer, "type_vocab_size", config->type_vocab_size);
	json_put_integer(writer, "vocab_size", config->vocab_size);
	json_close(writer);
}

static enum status save_config(const char *folder, const struct model_config *config)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text, .indent = 2};
	char path[PATH_BYTES];
	TRY(path_join(path, folder, "bert_config.json"));
	put_config(&writer, config);
	buffer_char(&text, '\n');
	enum status status = buffer_status(&text);
	if (status == OK)
		status = file_write(path, text.data, text.size);
	buffer_release(&text);
	if (config->hidden_act == ACTIVATION_GELU_ERF)
		log_warning(
			"the model was trained with the exact (erf) form of GELU; Google's code computes the tanh form, so its "
			"numbers will differ in the third or fourth digit");
	return status;
}

enum status tensorflow_folder_save(const char *folder, const struct model_folder_content *content, int64_t step)
{
	static const char state[] = "model_checkpoint_path: \"" PREFIX "\"\nall_model_checkpoint_paths: \"" PREFIX "\"\n";
	char path[PATH_BYTES];
	TRY(check_form(&content->model->config, content->vocab));
	TRY(check_heads(&content->model->heads));
	TRY(save_checkpoint(folder, content, step));
	TRY(save_config(folder, &content->model->config));
	TRY(path_join(path, folder, "checkpoint"));
	TRY(file_write(path, state, strlen(state)));
	TRY(path_join(path, folder, "vocab.txt"));
	return vocab_write(content->vocab, path);
}
