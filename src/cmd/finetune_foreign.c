/* Names that people bring from google-research/bert's run_classifier.py and run_squad.py, NVIDIA's run_glue.py, run_squad.py and
 * run_swag.py, and transformers' run_glue.py, run_qa.py, run_ner.py and run_swag.py, where they are no options here: what becomes
 * of each, and what to use instead. Names that mean the same as one of ours are its aliases (finetune_options.c). */
#include "cmd/finetune_options.h"
#include "cmd/foreign_rows.h"

const struct option_foreign finetune_foreign[] = {
	/* Folders */
	{.name = "overwrite_output_dir", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "fresh", .value = "true"},
	{.name = "resume_from_checkpoint resume",
	 .kind = FOREIGN_EITHER,
	 .answer = FOREIGN_IGNORED,
	 .option = "resume_from",
	 .why = "a run resumes from its newest checkpoint by itself; --resume_from names another one"},
	{.name = "skip_checkpoint",
	 .kind = FOREIGN_FLAG,
	 .answer = FOREIGN_MEANS,
	 .option = "save_checkpoints_steps",
	 .value = "0",
	 .why = "the finished model is always saved"},
	VALUE_LEFT_OUT("cache_dir", "nothing is downloaded or kept between runs"),
	FLAG_LEFT_OUT("skip_cache overwrite_cache", "the examples are read anew in every run"),
	FLAG_REFUSED("push_to_hub", "--out is a folder; its final/ can be uploaded as it is"),
	VALUE_REFUSED("hub_model_id hub_token", "--out is a folder; its final/ can be uploaded as it is"),

	/* Model */
	VALUE_REFUSED("config_name", "--config_file names a config.json"),
	VALUE_REFUSED("tokenizer_name", "--vocab_file names a vocabulary"),
	FLAG_LEFT_OUT("use_fast_tokenizer use_slow_tokenizer", "there is one tokenizer, whose ids are those of both"),
	VALUE_LEFT_OUT("model_revision token", "models are folders on this machine"),
	FLAG_LEFT_OUT("trust_remote_code use_auth_token", "models are folders on this machine"),
	FLAG_LEFT_OUT("ignore_mismatched_sizes", "a head with other classes is replaced by a new one, and that is said"),
	{.name = "do_lower_case", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "cased"},

	/* Data */
	VALUE_REFUSED("dataset_name dataset_config_name",
		      "data sets are not downloaded: --train and --dev name files, --data_dir a folder"),
	VALUE_REFUSED("max_train_samples max_eval_samples max_val_samples max_predict_samples max_test_samples",
		      "all rows of a file are used; to train on fewer, make a smaller file"),
	FLAG_LEFT_OUT("pad_to_max_length", "sequences are packed end to end, so nothing is padded"),
	FLAG_LEFT_OUT("label_all_tokens", "a word's tag is read off its first piece, as without this flag"),
	FLAG_LEFT_OUT("return_entity_level_metrics", "the report lists each type of entity"),
	FLAG_LEFT_OUT("group_by_length", "sequences are packed end to end, so nothing is padded"),
	FLAG_LEFT_OUT("remove_unused_columns", "columns that are not used are not read"),
	VALUE_LEFT_OUT("preprocessing_num_workers dataloader_num_workers num_workers",
		       "data loading uses one thread in addition to --threads"),
	FLAG_LEFT_OUT("dataloader_drop_last dataloader_pin_memory", "every example is used once in an epoch"),

	/* Steps */
	VALUE_LEFT_OUT("eval_batch_size predict_batch_size per_device_eval_batch_size per_gpu_eval_batch_size",
		       "the result does not depend on how much is computed at a time"),
	VALUE_LEFT_OUT("iterations_per_loop steps_per_loop", "there is no device loop; --log_steps sets how often bertc logs"),
	VALUE_LEFT_OUT("save_strategy logging_strategy evaluation_strategy eval_strategy",
		       "use --save_checkpoints_steps, --log_steps and --eval_steps; by default bertc saves and evaluates after "
		       "every epoch"),
	VALUE_LEFT_OUT("greater_is_better", "bertc knows in which direction each measure improves"),
	VALUE_LEFT_OUT("optim", "--optimizer names it: adamw is PyTorch's, google_adamw that of google-research/bert"),
	VALUE_REFUSED("label_smoothing_factor", "the loss is plain cross entropy; --class_weights sets weights of the classes"),
	FLAG_REFUSED("adafactor", "--optimizer names what there is: adamw, google_adamw, lamb, nvlamb"),

	/* Machine and reports */
	FOREIGN_MACHINE_ROWS,
	FLAG_LEFT_OUT("fp16_full_eval bf16_full_eval", "evaluation computes in the numbers of --precision"),
	VALUE_LEFT_OUT("fp16_opt_level half_precision_backend fp16_backend", "--precision sets the numbers to compute in"),
	FLAG_LEFT_OUT("torch_compile jit_mode_eval use_ipex", "kernels are fused and compiled into the program"),
	FLAG_LEFT_OUT("gradient_checkpointing",
		      "memory is planned before the run starts; a smaller --micro_batch_tokens needs less"),
	VALUE_LEFT_OUT("ddp_backend ddp_find_unused_parameters", RANKS_WHY),
	VALUE_LEFT_OUT("eval_script", "bertc computes the measures of the official scripts itself"),
	VALUE_LEFT_OUT("report_to run_name log_level", "metrics.jsonl in the run folder records every logged step"),
	FLAG_LEFT_OUT("logging_first_step", "losses are always reported; -v prints more detail"),
	FLAG_LEFT_OUT("disable_tqdm", "--no_progress hides the progress bar"),
	VALUE_LEFT_OUT("server_ip server_port", "it attaches a Python debugger"),
	{.name = NULL},
};
