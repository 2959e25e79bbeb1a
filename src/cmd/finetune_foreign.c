/* Names that people bring from google-research/bert's run_classifier.py and run_squad.py, NVIDIA's run_glue.py, run_squad.py and
 * run_swag.py, and transformers' run_glue.py, run_qa.py, run_ner.py and run_swag.py, where they are no options here: what becomes
 * of each, and what to use instead. Names that mean the same as one of ours are its aliases (finetune_options.c). */
#include "cmd/finetune_options.h"

#define FLAG_LEFT_OUT(names, reason)                                                                                             \
	{                                                                                                                        \
		.name = names, .kind = FOREIGN_FLAG, .answer = FOREIGN_IGNORED, .why = reason                                    \
	}
#define VALUE_LEFT_OUT(names, reason)                                                                                            \
	{                                                                                                                        \
		.name = names, .kind = FOREIGN_VALUE, .answer = FOREIGN_IGNORED, .why = reason                                   \
	}
#define FLAG_REFUSED(names, reason)                                                                                              \
	{                                                                                                                        \
		.name = names, .kind = FOREIGN_FLAG, .answer = FOREIGN_REFUSED, .why = reason                                    \
	}
#define VALUE_REFUSED(names, reason)                                                                                             \
	{                                                                                                                        \
		.name = names, .kind = FOREIGN_VALUE, .answer = FOREIGN_REFUSED, .why = reason                                   \
	}

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
	FLAG_LEFT_OUT("skip_cache overwrite_cache", "examples are made anew in every run"),
	FLAG_REFUSED("push_to_hub", "--out is a folder; its final/ can be uploaded as it is"),
	VALUE_REFUSED("hub_model_id hub_token", "--out is a folder; its final/ can be uploaded as it is"),

	/* Model */
	VALUE_LEFT_OUT("bert_model model_type", "a label only; --model names the model"),
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
		      "all rows of a file are used: make a smaller one"),
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
		       "results do not depend on how much is computed at a time"),
	VALUE_LEFT_OUT("iterations_per_loop steps_per_loop", "there is no device loop; --log_steps sets how often bertc logs"),
	VALUE_LEFT_OUT(
		"save_strategy logging_strategy evaluation_strategy eval_strategy",
		"--save_checkpoints_steps, --log_steps and --eval_steps say how often; otherwise at the end of each epoch"),
	VALUE_LEFT_OUT("greater_is_better", "which way a measure is better is known"),
	VALUE_LEFT_OUT("optim", "--optimizer names it: adamw is PyTorch's, google_adamw that of google-research/bert"),
	VALUE_REFUSED("label_smoothing_factor", "the loss is plain cross entropy; --class_weights weighs the classes"),
	FLAG_REFUSED("adafactor", "--optimizer names what there is: adamw, google_adamw, lamb, nvlamb"),

	/* Precision and device */
	FLAG_LEFT_OUT("fp16 amp use_fp16 fp16_full_eval bf16_full_eval",
		      "--precision defaults to the fastest type of the machine (bf16 where supported); --loss_scale 0 scales "
		      "dynamically"),
	VALUE_LEFT_OUT("fp16_opt_level half_precision_backend fp16_backend", "--precision says in which numbers is computed"),
	{.name = "bf16", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "precision", .value = "bf16"},
	FLAG_LEFT_OUT("tf32", "with --precision fp32, everything is computed in fp32"),
	{.name = "no_cuda use_cpu", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "device", .value = "cpu"},
	FLAG_LEFT_OUT("use_xla torch_compile jit_mode_eval use_ipex", "kernels are fused and compiled into the program"),
	FLAG_LEFT_OUT("gradient_checkpointing",
		      "memory is planned before the run starts; a smaller --micro_batch_tokens needs less"),
	FLAG_REFUSED("use_tpu", "bertc runs on processors, see --device"),
	VALUE_REFUSED("tpu tpu_name tpu_zone gcp_project master num_tpu_cores", "bertc runs on processors, see --device"),
	VALUE_LEFT_OUT("local_rank ddp_backend ddp_find_unused_parameters",
		       "--ranks and --n_gpus start the processes of a run; torchrun's and MPI's variables are understood"),
	FLAG_LEFT_OUT("use_env horovod use_horovod", "--ranks and --n_gpus start the processes of a run"),

	/* Reports */
	VALUE_LEFT_OUT("eval_script", "the measures are those of the official scripts, and computed inside"),
	VALUE_LEFT_OUT("json_summary dllog_path logging_dir", "metrics.jsonl in the run folder records every logged step"),
	VALUE_LEFT_OUT("report_to run_name log_level", "metrics.jsonl in the run folder has every logged step; -v says more"),
	FLAG_LEFT_OUT("report_loss verbose_logging verbose logging_first_step",
		      "losses are always reported; -v prints more detail"),
	FLAG_LEFT_OUT("disable_tqdm", "--quiet shows no progress"),
	FLAG_LEFT_OUT("profile", "`bertc bench` measures each operation"),
	VALUE_LEFT_OUT("server_ip server_port", "these attach a Python debugger"),
	{.name = NULL},
};
