/* Names that people bring from google-research/bert, NVIDIA's BERT, its TensorFlow relatives, transformers and Megatron-LM,
 * where they are no options here: what becomes of each, and what to use instead. Names that mean the same as one of ours
 * are its aliases (pretrain_options.c). */
#include "cmd/foreign_rows.h"
#include "cmd/pretrain_options.h"

const struct option_foreign pretrain_foreign[] = {
	/* What is done */
	{.name = "do_train",
	 .kind = FOREIGN_FLAG,
	 .answer = FOREIGN_ALWAYS,
	 .why = "`bertc pretrain` trains; `bertc evaluate` only scores a model"},
	FLAG_LEFT_OUT("do_eval", "held-out text is scored every --eval_steps; `bertc evaluate` only scores a model"),
	{.name = "skip_checkpoint",
	 .kind = FOREIGN_FLAG,
	 .answer = FOREIGN_MEANS,
	 .option = "save_checkpoints_steps",
	 .value = "0",
	 .why = "the finished model is always saved"},
	{.name = "overwrite_output_dir",
	 .kind = FOREIGN_FLAG,
	 .answer = FOREIGN_REFUSED,
	 .why = "--fresh removes what an earlier run left; without it, an interrupted run resumes"},
	{.name = "resume_from_checkpoint resume",
	 .kind = FOREIGN_EITHER,
	 .answer = FOREIGN_IGNORED,
	 .option = "resume_from",
	 .why = "a run resumes from its newest checkpoint by itself; --resume_from names another one"},
	FLAG_REFUSED("load_best_model_at_end",
		     "final is the model of the last step; the best checkpoint is kept besides, as best in the run folder"),

	/* Text */
	{.name = "do_lower_case", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "cased"},
	{.name = "train_file",
	 .kind = FOREIGN_VALUE,
	 .answer = FOREIGN_REFUSED,
	 .why = "--corpus is raw text, --data the shards of `bertc prepare`"},
	VALUE_REFUSED("validation_file", "--eval_corpus is text to evaluate on"),
	VALUE_REFUSED("validation_split_percentage", "--held_out_fraction is the share of documents kept out of training"),
	VALUE_LEFT_OUT("dupe_factor", "masks are drawn anew in every pass; --num_train_epochs sets the number of passes"),
	VALUE_REFUSED("output_file", "training generates its instances on the fly; `bertc prepare` writes token shards"),
	VALUE_REFUSED("tokenizer_name tokenizer_type",
		      "--vocab_file names the vocabulary, and --cased says whether upper case is kept"),
	FLAG_LEFT_OUT("line_by_line", "--text_form sentences means one sentence per line; otherwise bertc detects the form"),
	FLAG_LEFT_OUT("pad_to_max_length", "sequences are packed end to end, so nothing is padded"),
	FLAG_REFUSED("bert_no_binary_head", "--next_sentence none trains on running text without pairs"),
	VALUE_LEFT_OUT("num_workers dataloader_num_workers preprocessing_num_workers num_dataset_workers num_batch_workers",
		       "data loading uses one thread in addition to --threads"),

	/* Batches */
	VALUE_LEFT_OUT(
		"eval_batch_size per_device_eval_batch_size total_batch_size_eval",
		"evaluation computes as many tokens at a time as --micro_batch_tokens allows; the result does not depend on it"),
	VALUE_LEFT_OUT("max_eval_steps eval_iters",
		       "it counts batches, and bertc counts instances: --eval_instances sets how many "
		       "held-out instances are scored"),
	VALUE_REFUSED("per_device_train_batch_size micro_batch_size",
		      "--train_batch_size is the global batch per update, --train_batch_size_per_gpu the batch per device, and "
		      "--gradient_accumulation_steps the number of micro-batches it is split into"),
	VALUE_LEFT_OUT("iterations_per_loop steps_per_loop", "there is no device loop; --log_steps sets how often bertc logs"),
	FLAG_LEFT_OUT("no_dense_sequence_output", "the masked-word head computes masked positions only"),
	FLAG_LEFT_OUT("checkpoint_activations gradient_checkpointing recompute_activations",
		      "memory is planned before the run starts; a smaller --micro_batch_tokens needs less"),

	FOREIGN_MACHINE_ROWS,

	/* Reports */
	VALUE_LEFT_OUT("report_to run_name", "metrics.jsonl in the run folder records every logged step"),
	VALUE_LEFT_OUT("profile_start", "`bertc bench` measures each operation"),
	VALUE_LEFT_OUT("save_strategy logging_strategy evaluation_strategy eval_strategy",
		       "use --save_checkpoints_steps, --log_steps and --eval_steps"),
	{.name = NULL},
};
