/* Every flag of the programs that people migrate from is known to `bertc pretrain` and `bertc finetune`: as an option, or
 * with a line that says what becomes of it. */
#include "base/option.h"
#include "cmd/finetune/finetune_options.h"
#include "cmd/pretrain/pretrain_options.h"
#include "cmd/program.h"
#include "tasks/task.h"

/* clang-format off */
/* By program, as their parsers declare the flags. */
static const char google[] =
	"bert_config_file input_file output_dir init_checkpoint max_seq_length max_predictions_per_seq do_train "
	"do_eval train_batch_size eval_batch_size learning_rate num_train_steps num_warmup_steps "
	"save_checkpoints_steps iterations_per_loop max_eval_steps use_tpu tpu_name tpu_zone gcp_project master "
	"num_tpu_cores";
static const char google_data[] =
	"input_file output_file vocab_file do_lower_case do_whole_word_mask max_seq_length "
	"max_predictions_per_seq random_seed dupe_factor masked_lm_prob short_seq_prob";
static const char nvidia[] =
	"input_dir config_file output_dir vocab_file init_checkpoint max_seq_length max_predictions_per_seq "
	"train_batch_size learning_rate num_train_epochs max_steps warmup_proportion local_rank seed "
	"gradient_accumulation_steps fp16 amp loss_scale log_freq checkpoint_activations resume_from_checkpoint "
	"resume_step num_steps_per_checkpoint skip_checkpoint phase2 resume_phase2 allreduce_post_accumulation "
	"allreduce_post_accumulation_fp16 phase1_end_step init_loss_scale do_train json-summary use_env "
	"disable_progress_bar steps_this_run profile profile-start num_workers no_dense_sequence_output "
	"disable_jit_fusions cuda_graphs bert_model";
static const char nvidia_tensorflow[] =
	"input_files_dir eval_files_dir dllog_path optimizer_type num_accumulation_steps display_loss_steps "
	"verbose_logging horovod report_loss manual_fp16 use_xla";
static const char transformers[] =
	"model_name_or_path overwrite_output_dir per_device_train_batch_size per_device_eval_batch_size "
	"weight_decay adam_beta1 adam_beta2 adam_epsilon max_grad_norm lr_scheduler_type warmup_ratio "
	"warmup_steps logging_steps save_steps save_total_limit eval_steps bf16 mlm_probability train_file "
	"validation_file validation_split_percentage dataset_name cache_dir overwrite_cache use_fast_tokenizer "
	"model_revision token line_by_line pad_to_max_length max_train_samples do_train do_eval "
	"preprocessing_num_workers push_to_hub run_name disable_tqdm optim torch_compile early_stopping_patience "
	"early_stopping_threshold dataloader_num_workers report_to no_cuda gradient_checkpointing";
static const char megatron[] =
	"seq-length mask-prob train-iters global-batch-size lr min-lr lr-decay-style lr-warmup-fraction clip-grad "
	"adam-eps save-interval eval-interval log-interval micro-batch-size bert-no-binary-head num-layers "
	"hidden-size num-attention-heads max-position-embeddings micro-batch-size lr-decay-iters weight-decay "
	"fp16 data-path vocab-file split eval-iters save load tensor-model-parallel-size "
	"pipeline-model-parallel-size distributed-backend initial-loss-scale loss-scale-window hysteresis "
	"min-loss-scale use-distributed-optimizer";
/* The fields of transformers' TrainingArguments, of versions 4 and 5, and those of its scripts that are about models; then the
 * rest of run_mlm.py. */
static const char trainer[] =
	"output_dir overwrite_output_dir do_train do_eval do_predict eval_strategy evaluation_strategy "
	"prediction_loss_only per_device_train_batch_size per_device_eval_batch_size per_gpu_train_batch_size "
	"per_gpu_eval_batch_size gradient_accumulation_steps eval_accumulation_steps eval_delay "
	"torch_empty_cache_steps learning_rate weight_decay adam_beta1 adam_beta2 adam_epsilon max_grad_norm "
	"num_train_epochs max_steps lr_scheduler_type lr_scheduler_kwargs warmup_ratio warmup_steps log_level "
	"log_level_replica log_on_each_node logging_dir logging_strategy logging_first_step logging_steps "
	"logging_nan_inf_filter save_strategy save_steps save_total_limit save_safetensors save_on_each_node "
	"save_only_model restore_callback_states_from_checkpoint no_cuda use_cpu use_mps_device seed data_seed "
	"jit_mode_eval use_ipex bf16 fp16 fp16_opt_level half_precision_backend bf16_full_eval fp16_full_eval "
	"tf32 local_rank ddp_backend tpu_metrics_debug debug dataloader_drop_last eval_steps "
	"dataloader_num_workers dataloader_prefetch_factor past_index run_name disable_tqdm remove_unused_columns "
	"label_names load_best_model_at_end metric_for_best_model greater_is_better ignore_data_skip fsdp "
	"fsdp_min_num_params fsdp_config fsdp_transformer_layer_cls_to_wrap accelerator_config parallelism_config "
	"deepspeed label_smoothing_factor optim optim_args adafactor group_by_length length_column_name report_to "
	"project trackio_space_id ddp_find_unused_parameters ddp_bucket_cap_mb ddp_broadcast_buffers "
	"dataloader_pin_memory dataloader_persistent_workers skip_memory_metrics use_legacy_prediction_loop "
	"push_to_hub resume_from_checkpoint hub_model_id hub_strategy hub_token hub_private_repo hub_always_push "
	"hub_revision gradient_checkpointing gradient_checkpointing_kwargs include_inputs_for_metrics "
	"include_for_metrics eval_do_concat_batches fp16_backend push_to_hub_model_id push_to_hub_organization "
	"push_to_hub_token mp_parameters auto_find_batch_size full_determinism torchdynamo ray_scope ddp_timeout "
	"torch_compile torch_compile_backend torch_compile_mode dispatch_batches split_batches "
	"include_tokens_per_second include_num_input_tokens_seen neftune_noise_alpha optim_target_modules "
	"batch_eval_metrics eval_on_start use_liger_kernel liger_kernel_config eval_use_gather_object "
	"average_tokens_across_devices use_cache train_sampling_strategy enable_jit_checkpoint tpu_num_cores "
	"sharded_ddp activation_checkpointing activation_checkpointing_kwargs dataloader_in_order "
	"dataloader_multiprocessing_context trackio_bucket_id trackio_static_space_id";
static const char of_models[] =
	"model_name_or_path config_name tokenizer_name cache_dir use_fast_tokenizer model_revision token "
	"use_auth_token trust_remote_code torch_dtype low_cpu_mem_usage";
static const char run_mlm[] =
	"model_type config_overrides streaming line_by_line mlm_probability max_seq_length";
static const char *const pretrain_programs[] = {google,   google_data, nvidia,    nvidia_tensorflow, transformers,
						       megatron, trainer,     of_models, run_mlm,           NULL};

/* run_classifier.py, run_squad.py */
static const char google_finetune[] =
	"data_dir bert_config_file task_name vocab_file output_dir init_checkpoint do_lower_case max_seq_length "
	"do_train do_eval do_predict train_batch_size eval_batch_size predict_batch_size learning_rate "
	"num_train_epochs warmup_proportion save_checkpoints_steps iterations_per_loop use_tpu tpu_name tpu_zone "
	"gcp_project master num_tpu_cores train_file predict_file doc_stride max_query_length n_best_size "
	"max_answer_length verbose_logging version_2_with_negative null_score_diff_threshold";
/* run_glue.py, run_squad.py, run_swag.py */
static const char nvidia_finetune[] =
	"data_dir bert_model task_name output_dir init_checkpoint max_seq_length do_train do_eval do_predict "
	"do_lower_case train_batch_size eval_batch_size learning_rate num_train_epochs max_steps "
	"warmup_proportion no_cuda local_rank seed gradient_accumulation_steps fp16 amp loss_scale server_ip "
	"server_port vocab_file config_file skip_checkpoint train_file predict_file doc_stride max_query_length "
	"predict_batch_size n_best_size max_answer_length verbose_logging version_2_with_negative "
	"null_score_diff_threshold log_freq json-summary eval_script use_env disable_progress_bar skip_cache "
	"cache_dir profile";
/* run_glue.py, run_qa.py, run_ner.py, run_swag.py */
static const char transformers_finetune[] =
	"model_name_or_path config_name tokenizer_name cache_dir use_fast_tokenizer model_revision token "
	"trust_remote_code ignore_mismatched_sizes task_name dataset_name dataset_config_name train_file "
	"validation_file test_file overwrite_cache preprocessing_num_workers max_seq_length pad_to_max_length "
	"max_train_samples max_eval_samples max_predict_samples version_2_with_negative null_score_diff_threshold "
	"doc_stride n_best_size max_answer_length text_column_name label_column_name label_all_tokens "
	"return_entity_level_metrics output_dir overwrite_output_dir do_train do_eval do_predict "
	"evaluation_strategy eval_strategy per_device_train_batch_size per_device_eval_batch_size "
	"gradient_accumulation_steps learning_rate weight_decay adam_beta1 adam_beta2 adam_epsilon max_grad_norm "
	"num_train_epochs max_steps lr_scheduler_type warmup_ratio warmup_steps logging_dir logging_strategy "
	"logging_first_step logging_steps save_strategy save_steps save_total_limit no_cuda use_cpu seed fp16 "
	"bf16 fp16_opt_level tf32 local_rank eval_steps dataloader_num_workers run_name disable_tqdm "
	"remove_unused_columns load_best_model_at_end metric_for_best_model greater_is_better "
	"label_smoothing_factor optim group_by_length report_to push_to_hub resume_from_checkpoint "
	"gradient_checkpointing torch_compile";
/* run_classification.py, run_xnli.py, and scripts without the Trainer */
static const char run_classification[] =
	"do_regression text_column_names text_column_delimiter train_split_name validation_split_name "
	"test_split_name remove_splits remove_columns label_column_name metric_name shuffle_train_dataset "
	"shuffle_seed language train_language max_train_steps checkpointing_steps with_tracking "
	"use_slow_tokenizer max_length";
static const char *const finetune_programs[] = {
	google_finetune, nvidia_finetune, transformers_finetune, trainer, of_models, run_classification, NULL};
/* clang-format on */

static struct {
	struct pretraining_options pretrain;
	struct finetune_settings finetune;
} settings;

/* What is tested for a command. */
static const struct {
	const struct option *options;
	const struct option_foreign *foreign;
	void *settings;
	const char *const *programs; /* each the names of its flags */
} all[] = {{pretrain_options, pretrain_foreign, &settings.pretrain, pretrain_programs},
	   {finetune_options, finetune_foreign, &settings.finetune, finetune_programs}};
#define COMMANDS (sizeof all / sizeof *all)

/* Options that every command has are not in its table. */
static bool is_common(const char *name)
{
	return !strcmp(name, "disable_progress_bar");
}

static const struct option_foreign *find_foreign(const struct option_foreign *table, const char *name)
{
	const struct option_foreign *row = table;
	for (; row->name; row++) {
		char list[512], *save;
		snprintf(list, sizeof list, "%s", row->name);
		for (char *one = strtok_r(list, " ", &save); one; one = strtok_r(NULL, " ", &save)) {
			size_t i = 0;
			for (; one[i] && (one[i] == name[i] || (one[i] == '_' && name[i] == '-')); i++)
				;
			if (!one[i] && !name[i])
				return row;
		}
	}
	return row->rest ? find_foreign(row->rest, name) : NULL;
}

static void every_name_is_known(void **state)
{
	int unknown = 0;
	for (size_t c = 0; c < COMMANDS; c++) {
		struct options options;
		assert_ok(options_init(&options, all[c].options, all[c].settings));
		for (const char *const *program = all[c].programs; *program; program++) {
			char names[4096], *save;
			assert_true(strlen(*program) < sizeof names);
			snprintf(names, sizeof names, "%s", *program);
			for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
				if (options_find(&options, name) >= 0 || find_foreign(all[c].foreign, name) || is_common(name))
					continue;
				print_error("--%s is unknown\n", name);
				unknown++;
			}
		}
		options_release(&options);
	}
	assert_int_equal(unknown, 0);
}

static void check_row(const struct options *options, const struct option_foreign *table, const struct option_foreign *row)
{
	char list[512], *save;
	snprintf(list, sizeof list, "%s", row->name);
	for (char *one = strtok_r(list, " ", &save); one; one = strtok_r(NULL, " ", &save)) {
		if (options_find(options, one) >= 0)
			fail_msg("--%s is an option, too", one);
		if (find_foreign(table, one) != row)
			fail_msg("--%s has two rows", one);
	}
	assert_true(row->answer == FOREIGN_MEANS || (row->why && strlen(row->why) > 10));
	if (row->option)
		assert_true(options_find(options, row->option) >= 0);
	/* Every option of ours that an explanation names exists. */
	for (const char *at = row->why; at && (at = strstr(at, "--")) != NULL; at += 2) {
		char named[64] = "";
		size_t length = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz_0123456789");
		snprintf(named, sizeof named, "%.*s", (int)length, at + 2);
		if (options_find(options, named) < 0 && strcmp(named, "no_progress") != 0)
			fail_msg("'%s': there is no --%s", row->why, named);
	}
}

static void no_row_is_dead_and_each_says_why(void **state)
{
	for (size_t c = 0; c < COMMANDS; c++) {
		struct options options;
		assert_ok(options_init(&options, all[c].options, all[c].settings));
		for (const struct option_foreign *rest = all[c].foreign, *row = rest; rest; rest = row->rest)
			for (row = rest; row->name; row++)
				check_row(&options, all[c].foreign, row);
		options_release(&options);
	}
}

/* Whole command lines of the other programs, given to bertc itself. */
static void command_lines_of_others(void **state)
{
	assert_program(2, "--held_out_fraction", "pretrain --output_dir %s/x --validation_split_percentage 5", test_folder);
	assert_program(2, "--do_train false: this command does nothing else", "pretrain --output_dir %s/x --do_train=False",
		       test_folder);
	assert_program(2, "--vocab_file names", "pretrain --output_dir %s/x --tokenizer_name bert-base-cased", test_folder);
	assert_program(2, "final is the model of the last step", "pretrain --output_dir %s/x --load_best_model_at_end=True",
		       test_folder);
	assert_program(2, "bertc has no TPU back end", "pretrain --output_dir %s/x --use_tpu=True", test_folder);
	assert_program(2, "--corpus is missing",
		       "pretrain --output_dir %s/x --do_train --do_eval=True --use_tpu=False --iterations_per_loop 1000 "
		       "--eval_batch_size=8 --do_lower_case=True --vocab_file %s/vocab.txt --dupe_factor 5",
		       test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_errors), "--do_eval is ignored"));
	assert_non_null(strstr(buffer_string(&program_errors), "--do_lower_case means --cased false"));
	assert_program(
		2, "--corpus is missing",
		"pretrain --output_dir=%s/y --vocab_file %s/vocab.txt --fp16 --gradient_accumulation_steps=128 "
		"--log_freq=1 --num_steps_per_checkpoint=200 --warmup_proportion=0.2843 --seed=12439 "
		"--allreduce_post_accumulation --allreduce_post_accumulation_fp16 --do_train "
		"--json-summary %s/dllogger.json --disable_progress_bar --resume_from_checkpoint --max_steps=7038 "
		"--learning_rate=6e-3 --train_batch_size=8192 --num_workers=4 --no_dense_sequence_output --skip_checkpoint",
		test_folder, test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_errors), "--save_checkpoints_steps 0"));
	/* TensorFlow's scripts turn flags off in this way. */
	assert_program(2, "--corpus is missing", "pretrain --output_dir=%s/y --nodo_lower_case --noamp --nouse_tpu", test_folder);
	assert_said("--do_lower_case means --cased true");
}

/* The answer says what the flag requests, under its name here. */
static void answers_name_what_was_asked_for(void **state)
{
	static const struct {
		const char *name, *part;
		int answer;
	} rows[] = {
		{"local_rank", "--ranks", FOREIGN_IGNORED},
		{"use_env", "torchrun", FOREIGN_IGNORED},
		{"horovod", "--n_gpus", FOREIGN_IGNORED},
		{"tf32", "--precision tf32", FOREIGN_IGNORED},
		{"tf32", "the default is bf16", FOREIGN_IGNORED},
		{"fp16", "--precision bf16", FOREIGN_IGNORED},
		{"fp16", "dynamic loss scale", FOREIGN_IGNORED},
		{"amp", "ixed precision", FOREIGN_IGNORED},
		{"logging_dir", "TensorBoard", FOREIGN_IGNORED},
		{"json_summary", "metrics.jsonl", FOREIGN_IGNORED},
		{"max_eval_steps", "counts batches", FOREIGN_IGNORED},
		{"max_eval_steps", "--eval_instances", FOREIGN_IGNORED},
		{"num_tpu_cores", "--device", FOREIGN_IGNORED},
		{"tpu_name", "--device", FOREIGN_IGNORED},
		{"use_tpu", "--device", FOREIGN_REFUSED},
		{"deepspeed", "ZeRO", FOREIGN_IGNORED},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct option_foreign *row = find_foreign(pretrain_foreign, rows[i].name);
		assert_non_null(row);
		assert_int_equal(row->answer, rows[i].answer);
		if (!strstr(row->why, rows[i].part))
			fail_msg("--%s: '%s' does not mention '%s'", rows[i].name, row->why, rows[i].part);
	}
}

static void values_that_change_the_result_are_refused(void **state)
{
	static const struct {
		const char *given, *answer;
	} rows[] = {
		{"--data_seed 3", "--seed"},
		{"--torch_dtype bfloat16", "--precision"},
		{"--eval_delay 2", "--eval_steps"},
		{"--train_sampling_strategy sequential", "--shuffle false"},
		{"--lr_scheduler_kwargs {\\\"num_cycles\\\":3}", "--min_learning_rate"},
		{"--model_type roberta", "config.json"},
		{"--model_revision v2", "--model hf:OWNER/NAME@REVISION"},
		{"--neftune_noise_alpha 5", "--hidden_dropout_prob"},
		{"--ignore_data_skip", "resumed"},
		{"--split_batches", "--per_device_train_batch_size"},
	};
	static const char *const commands_[] = {"pretrain", "finetune"};
	for (size_t c = 0; c < 2; c++) {
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			assert_program(2, "bertc has no option --", "%s --out %s/x %s", commands_[c], test_folder, rows[i].given);
			assert_said(rows[i].answer);
		}
		/* The same options with values that change nothing, and names for the same schedules. */
		assert_program(
			0, "",
			"%s --out %s/x --torch_dtype auto --eval_delay 0 --train_sampling_strategy random --ignore_data_skip "
			"False --model_type bert --model_revision main --lr_scheduler_type constant_with_warmup --print_config",
			commands_[c], test_folder);
		assert_printed("schedule = constant");
		assert_program(0, "", "%s --out %s/x --lr_scheduler_type cosine_with_restarts --print_config", commands_[c],
			       test_folder);
		assert_printed("schedule = cosine");
		assert_program(2, "--lr_scheduler_type is --schedule here", "%s --out %s/x --lr_scheduler_type polynomial",
			       commands_[c], test_folder);
		assert_said("--schedule poly --min_learning_rate 1e-7");
		assert_program(2, "--warmup_proportion", "%s --out %s/x --warmup_steps 0.1", commands_[c], test_folder);
	}
	assert_program(2, "--pair_column", "finetune --out %s/x --text_column_names premise,hypothesis", test_folder);
	assert_program(0, "", "finetune --out %s/x --do_regression --print_config", test_folder);
	assert_printed("task = regression");
	assert_program(0, "", "finetune --out %s/x --label_smoothing_factor 0.1 --print_config", test_folder);
	assert_printed("label_smoothing = 0.1");
	assert_program(2, "cross entropy", "pretrain --out %s/x --label_smoothing_factor 0.1", test_folder);
	assert_program(2, "--hidden_size", "pretrain --out %s/x --config_overrides n_layer=4", test_folder);
}

/* Names that take several values or, in newer versions, a word; and lists in a file of arguments. */
static void values_of_others(void **state)
{
	static const char file[] = "{\"train_data_file\": [\"one.txt\", \"two.txt\"], \"output_dir\": \"x\", "
				   "\"hub_strategy\": \"every_save\", \"accelerator_config\": {\"split_batches\": false}, "
				   "\"label_names\": null, \"include_for_metrics\": []}",
			  unknown[] = "{\"frobnicate\": null}";
	assert_program(0, "",
		       "finetune --out %s/x --label_names a b --include_for_metrics inputs loss "
		       "--include_num_input_tokens_seen all --print_config",
		       test_folder);
	assert_ok(file_write(test_path("args.json"), file, strlen(file)));
	assert_program(0, "", "pretrain --config %s/args.json --print_config", test_folder);
	assert_printed("corpus = one.txt  ");
	assert_printed("corpus = two.txt  ");
	assert_ok(file_write(test_path("args.json"), unknown, strlen(unknown)));
	assert_program(2, "unknown option 'frobnicate'", "pretrain --config %s/args.json", test_folder);
}

/* Tasks by their names in transformers. */
static void names_of_tasks(void **state)
{
	static const struct {
		const char *name, *task;
	} rows[] = {
		{"token-classification", "tagging"},       {"NER", "tagging"},
		{"question-answering", "squad"},           {"qa", "squad"},
		{"text-classification", "classification"}, {"sequence_classification", "classification"},
		{"sentence-similarity", "embedding"},      {"text-ranking", "reranking"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct task *task;
		const struct layout *layout;
		assert_ok(task_find(rows[i].name, &task, &layout));
		assert_string_equal(task->name, rows[i].task);
	}
	assert_program(2, "--task sts-b", "finetune --out %s/x --task similarity", test_folder);
	assert_program(2, "bertc embed", "finetune --out %s/x --task feature-extraction", test_folder);
	assert_program(2, "did you mean token-classification?", "finetune --out %s/x --task token-clasification", test_folder);
}

/* With --quiet, warnings about ignored flags are still printed, wherever the flag stands; notes about flags that only have
 * another name here are not. */
static void answers_are_warnings(void **state)
{
	assert_program(2, "warning: --fp16 is ignored", "pretrain --output_dir %s/x --do_lower_case --fp16 --max_eval_steps 5 -q",
		       test_folder);
	assert_said("warning: --max_eval_steps is ignored: it counts batches");
	assert_null(strstr(buffer_string(&program_errors), "--do_lower_case"));
	assert_program(2, "warning: --fp16 is ignored", "finetune --output_dir %s/x --do_lower_case --fp16", test_folder);
	assert_said("--do_lower_case means --cased false");
}

/* Many ignored names, as in a file of all arguments, share a warning; -v has the reasons. */
static void many_ignored_names_share_a_warning(void **state)
{
	const char *names = "--fp16 --bf16_full_eval --tf32 --use_liger_kernel --disable_tqdm --log_level info --project x";
	assert_program(2, "7 names of other programs' options are ignored", "finetune --output_dir %s/x %s", test_folder, names);
	assert_said("fp16, bf16_full_eval, tf32, use_liger_kernel, disable_tqdm, log_level, project");
	assert_null(strstr(buffer_string(&program_errors), "is ignored"));
	assert_program(2, "--bf16_full_eval is ignored: evaluation computes", "finetune --output_dir %s/x %s -v", test_folder,
		       names);
}

/* With a name that only NVIDIA's scripts use, the batch is that of one GPU; without it, the same number is the batch of
 * all GPUs. */
static void a_batch_means_what_it_does_there(void **state)
{
	static const struct {
		const char *options, *batch;
	} rows[] = {
		{"", "batch: 8 instances"},
		{"--json-summary x.json", "batch: 16 instances"},
		{"--allreduce_post_accumulation", "batch: 8 instances"}, /* one of our own options as well */
		{"--bert_model bert-large --gradient_accumulation_steps 2", "batch: 16 instances"},
		{"--horovod --num_accumulation_steps 2", "batch: 32 instances"},
		{"--train_batch_size_per_gpu 8 --json-summary x.json", "not both"},
		{"--optim adamw_torch --tokenizer_type BertWordPieceLowerCase", "batch: 8 instances"},
		{"--optim adafactor", "bertc has no option --optim"},
	};
	struct buffer text = {0};
	for (int i = 0; i < 40; i++)
		buffer_text(&text, "The cat sat on a mat.\nIt was grey.\nA dog came.\n\n");
	assert_ok(file_write(test_path("cats.txt"), text.data, text.size));
	buffer_release(&text);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool fails = !strstr(rows[i].batch, "batch: ");
		assert_program(
			fails ? 2 : 0, rows[i].batch,
			"pretrain --corpus %s --out %s/plan --model tiny --vocab_size 60 --max_seq_length 32 --num_train_steps 4 "
			"--train_batch_size 8 --ranks 2 --device cpu --plan %s",
			test_path("cats.txt"), test_folder, rows[i].options);
		bool warned =
			strstr(buffer_string(&program_errors), "--train_batch_size means --train_batch_size_per_gpu") != NULL;
		assert_int_equal(warned, !fails && !strstr(rows[i].batch, " 8 "));
		bool rate = strstr(buffer_string(&program_errors), "as --scale_learning_rate linear does") != NULL;
		assert_int_equal(rate, strstr(rows[i].options, "--horovod") != NULL);
	}
}

static void all_problems_at_once(void **state)
{
	assert_program(2, "bertc: 7 problems:\n",
		       "pretrain --modle tiny extra --seed many --bert_no_binary_head --num_train_steps 5 --num_train_epochs 2 "
		       "--eval_steps --train_batch_size 16");
	assert_said("\n  unknown option '--modle'; did you mean --model?\n");
	assert_said("\n  --seed must be a whole number, not 'many'\n");
	assert_said("\n  bertc has no option --bert_no_binary_head; --next_sentence none trains on running text without pairs\n");
	assert_said("\n  --eval_steps needs a value");
	assert_said("\n  --out is missing; ");
	assert_said("\n  --corpus is missing; ");
	assert_program(2, "2 problems", "pretrain --corpus a --out %s/x --num_train_steps 5 --num_train_epochs 2 --seed -1",
		       test_folder);
	assert_said("give either --num_train_steps or --num_train_epochs, not both");
	/* A single problem is reported like any other error. */
	assert_program(2, "bertc: unknown option '--epochss'\nhint: ", "pretrain --corpus a --out %s/x --epochss 3", test_folder);
	/* An option given incorrectly is not reported as missing. */
	assert_program(2, "2 problems", "finetune --taks mrpc --model m --train t --out");
	assert_said("--out needs a value");
	assert_program(2, "4 problems", "finetune");
	assert_said("--train is missing");
	assert_program(2, "3 problems", "export");
	/* Problems in a config file are reported, too, with their lines. */
	assert_ok(file_write(test_path("wrong.conf"), "seed = x\nmodle = tiny\n", 22));
	assert_program(2, "wrong.conf' line 1: --seed must be a whole number", "pretrain --config %s --corpus a --out %s/x",
		       test_path("wrong.conf"), test_folder);
	assert_said("wrong.conf' line 2: unknown option 'modle'; did you mean model?");
}

static int setup(void **state)
{
	static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n";
	if (test_folder_make(state) != 0)
		return -1;
	return file_write(test_path("vocab.txt"), vocab, sizeof vocab - 1) == OK ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_is_known),
		cmocka_unit_test(no_row_is_dead_and_each_says_why),
		cmocka_unit_test(command_lines_of_others),
		cmocka_unit_test(answers_name_what_was_asked_for),
		cmocka_unit_test(values_that_change_the_result_are_refused),
		cmocka_unit_test(values_of_others),
		cmocka_unit_test(names_of_tasks),
		cmocka_unit_test(answers_are_warnings),
		cmocka_unit_test(many_ignored_names_share_a_warning),
		cmocka_unit_test(all_problems_at_once),
		cmocka_unit_test(a_batch_means_what_it_does_there),
	};
	return cmocka_run_group_tests_name("names from other programs", tests, setup, program_teardown);
}
