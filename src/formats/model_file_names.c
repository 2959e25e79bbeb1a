/* The names of a model's files: what is downloaded, and what an export or a copy of a model takes along. */
#include "formats/model_file_names.h"

#include <string.h>

const char *const model_file_names[] = {
	"config.json",
	"bert_config.json",
	"vocab.txt",
	"tokenizer.json",
	"vocab.json",
	"merges.txt",
	"sentencepiece.bpe.model",
	"spiece.model",
	"tokenizer_config.json",
	"special_tokens_map.json",
	"added_tokens.json",
	TASK_RECORD_FILE,
	ADAPTER_CONFIG_FILE,
	"modules.json",
	"config_sentence_transformers.json",
	"sentence_bert_config.json",
	"sentence_roberta_config.json",
	"sentence_distilbert_config.json",
	NULL,
};

bool model_file_name_is(const char *name)
{
	for (const char *const *known = model_file_names; *known; known++)
		if (strcmp(name, *known) == 0)
			return true;
	return false;
}
