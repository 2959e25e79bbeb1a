/* Single sizes besides --model: their effect, and what they cannot change. */
#include "cmd/small_run.h"
#include "model/model.h"

static int setup(void **state)
{
	return small_run_make(state, 6);
}

static void sizes_that_follow(void **state)
{
	struct model_config model;
	assert_ok(model_config_named(&model, "base"));
	assert_ok(model_config_resize(&model, &(struct model_sizes){.num_hidden_layers = 6}));
	assert_int_equal(model.num_hidden_layers, 6);
	assert_int_equal(model.hidden_size, 768);
	/* With another width, the heads and the feed-forward part follow unless they are given. */
	assert_ok(model_config_resize(&model, &(struct model_sizes){.hidden_size = 384}));
	assert_int_equal(model.num_attention_heads, 6);
	assert_int_equal(model.intermediate_size, 1536);
	assert_ok(model_config_resize(
		&model, &(struct model_sizes){.hidden_size = 512, .num_attention_heads = 16, .intermediate_size = 1000}));
	assert_int_equal(model.num_attention_heads, 16);
	assert_int_equal(model.intermediate_size, 1000);
	assert_error(ERR_USAGE, "a width of 100 cannot be divided among 16 attention heads",
		     model_config_resize(&model, &(struct model_sizes){.hidden_size = 100}));
}

static int32_t size_in(const char *path, const char *name)
{
	struct json_document document;
	int64_t value = 0;
	assert_ok(json_read(&document, path, 1 << 20));
	assert_ok(json_get_integer(document.root, path, name, 0, 1 << 20, &value));
	json_release(&document);
	return (int32_t)value;
}

static void a_run_of_chosen_sizes(void **state)
{
	const char *common = "--vocab_size 80 --train_batch_size 8 --max_seq_length 32 --num_train_steps 1 --eval_steps 0 "
			     "--precision fp32 --threads 1";
	assert_program(OK, "",
		       "pretrain --corpus %s --model tiny --num_layers 1 --hidden_size 64 --max_position_embeddings 48 %s "
		       "--out %s/run",
		       corpus, common, test_folder);
	const char *made = test_path("run/final/config.json");
	assert_int_equal(size_in(made, "num_hidden_layers"), 1);
	assert_int_equal(size_in(made, "hidden_size"), 64);
	assert_int_equal(size_in(made, "num_attention_heads"), 1);
	assert_int_equal(size_in(made, "intermediate_size"), 256);
	assert_int_equal(size_in(made, "max_position_embeddings"), 48);
	/* A resumed run keeps them; other sizes are refused. */
	assert_program(OK, "", "pretrain --out %s/run", test_folder);
	assert_program(ERR_STATE, "hidden_size", "pretrain --out %s/run --hidden_size 128", test_folder);
	/* The sizes of trained weights are fixed. */
	assert_program(OK, "", "pretrain --corpus %s --init_checkpoint %s/run --hidden_size 64 %s --out %s/same --plan", corpus,
		       test_folder, common, test_folder);
	assert_program(ERR_USAGE, "cannot change the sizes of trained weights",
		       "pretrain --corpus %s --init_checkpoint %s/run --num_layers 2 %s --out %s/other", corpus, test_folder,
		       common, test_folder);
	assert_program(ERR_USAGE, "beyond the model's 16 positions",
		       "pretrain --corpus %s --model tiny --max_position_embeddings 16 %s --out %s/short", corpus, common,
		       test_folder);
	assert_program(ERR_USAGE, "did you mean nomic_bert?", "pretrain --corpus %s --model tiny --form nomic %s --out %s/other",
		       corpus, common, test_folder);
	/* Other commands that create a model accept them, too. */
	assert_program(OK, "", "plan --model base --num_layers 3 --hidden_size 256 --vocab_size 80 --gpus 1 --gpu a100");
	assert_non_null(strstr(buffer_string(&program_output), "3 layers"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_that_follow),
		cmocka_unit_test(a_run_of_chosen_sizes),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
