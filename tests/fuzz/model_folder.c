/* Files beside a model's weights, one of which has the input's bytes, as its first byte says: those of sentence-transformers,
 * peft's configuration, vocab.json with merges.txt, and the map of special tokens. */
#include "fuzz.h"
#include "text/tokenizer/pair_files.h"
#include "weights/adapter.h"
#include "weights/sentence_folder.h"

static const struct fuzz_seed usual[][2] = {
	{FUZZ_SEED("modules.json"),
	 FUZZ_SEED("[{\"idx\":0,\"name\":\"0\",\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},{\"idx\":1,"
		   "\"name\":\"1\",\"path\":\"\",\"type\":\"sentence_transformers.models.Pooling\"},{\"idx\":2,\"name\":\"2\","
		   "\"path\":\"2_Normalize\",\"type\":\"sentence_transformers.models.Normalize\"}]")},
	{FUZZ_SEED("config.json"),
	 FUZZ_SEED("{\"word_embedding_dimension\":8,\"pooling_mode\":[\"cls\",\"mean\"],\"include_prompt\":"
		   "false,\"pooling_mode_cls_token\":true}")},
	{FUZZ_SEED("sentence_bert_config.json"), FUZZ_SEED("{\"max_seq_length\":128,\"do_lower_case\":true}")},
	{FUZZ_SEED("config_sentence_transformers.json"),
	 FUZZ_SEED("{\"__version__\":{},\"prompts\":{\"query\":\"q: \",\"passage\":\"\"},\"default_prompt_name\":\"query\","
		   "\"similarity_fn_name\":\"dot\",\"truncate_dim\":4}")},
	{FUZZ_SEED("adapter_config.json"), FUZZ_SEED("{\"peft_type\":\"LORA\",\"task_type\":\"SEQ_CLS\",\"lora_alpha\":16,"
						     "\"use_rslora\":true,\"base_model_name_or_path\":\".\"}")},
	{FUZZ_SEED("vocab.json"), FUZZ_SEED("{\"<s>\":0,\"</s>\":1,\"a\":2,\"b\":3,\"ab\":4}")},
	{FUZZ_SEED("merges.txt"), FUZZ_SEED("#version: 0.2\na b\r\n")},
	{FUZZ_SEED("special_tokens_map.json"),
	 FUZZ_SEED("{\"cls_token\":\"<s>\",\"sep_token\":{\"content\":\"</s>\",\"lstrip\":true}}")},
};
#define FILES (sizeof usual / sizeof *usual)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	for (size_t i = 0; i < FILES; i++) {
		char seed[512] = {(char)i};
		memcpy(seed + 1, usual[i][1].bytes, usual[i][1].size);
		fuzz_add_seed(*argv, seed, usual[i][1].size + 1);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char folder[256], weights[300];
	struct sentence_folder sentence;
	struct adapter_config adapter;
	struct buffer tokenizer = {0};
	if (count == 0)
		return 0;
	for (size_t i = 0; i < FILES; i++) {
		bool chosen = i == bytes[0] % FILES;
		snprintf(folder, sizeof folder, "%s",
			 fuzz_file(usual[i][0].bytes, chosen ? bytes + 1 : usual[i][1].bytes,
				   chosen ? count - 1 : usual[i][1].size));
	}
	*strrchr(folder, '/') = '\0';
	if (sentence_folder_read(&sentence, folder) == OK) {
		BUG_IF(!sentence.found || sentence.default_prompt >= sentence.prompt_count || sentence.max_seq_length < 0);
		sentence_folder_query_prompt(&sentence);
		sentence_folder_document_prompt(&sentence);
	}
	sentence_folder_release(&sentence);
	snprintf(weights, sizeof weights, "%s/" ADAPTER_WEIGHTS_FILE, folder);
	if (adapter_config_read(&adapter, weights) == OK)
		BUG_IF(!adapter.base[0]);
	snprintf(weights, sizeof weights, "%s/vocab.json", folder);
	if (pair_files_read(weights, &tokenizer) == OK)
		BUG_IF(tokenizer.size == 0);
	buffer_release(&tokenizer);
	return 0;
}
