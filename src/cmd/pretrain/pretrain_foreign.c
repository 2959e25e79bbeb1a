/* Option names from google-research/bert, NVIDIA's BERT, TensorFlow scripts derived from it, transformers, and Megatron-LM that
 * are not options here: what happens to each, and what to use instead. Names that mean the same as one of our options are its
 * aliases (pretrain_options.c). */
#include "cmd/foreign_rows.h"
#include "cmd/pretrain/pretrain_options.h"

/* clang-format off */
const struct option_foreign pretrain_foreign[] = {
	/* Actions */
	{.name = "do_train", .kind = FOREIGN_FLAG, .answer = FOREIGN_ALWAYS,
	 .why = "`bertc pretrain` trains; `bertc evaluate` only scores a model"},
	FLAG_LEFT_OUT("do_eval", "held-out text is scored every --eval_steps; `bertc evaluate` only scores a model"),
	FLAG_LEFT_OUT("do_predict", "held-out text is scored every --eval_steps; `bertc fill` and `bertc score` use the model"),
	{.name = "mlm", .kind = FOREIGN_FLAG, .answer = FOREIGN_ALWAYS, .why = "a BERT is trained on masked words"},
	{.name = "overwrite_output_dir", .kind = FOREIGN_FLAG, .answer = FOREIGN_REFUSED,
	 .why = "--fresh removes what an earlier run left; without it, an interrupted run resumes"},
	VALUE_REFUSED_BUT("metric_for_best_model", "loss eval_loss",
		"the loss on held-out text selects the best checkpoint; --best_by names the set of text"),
	FLAG_REFUSED("load_best_model_at_end",
		"final is the model of the last step; the best checkpoint is kept as well, as best in the run folder"),

	/* Model */
	VALUE_REFUSED_BUT("model_type", "bert", "--form sets the type of a new model; others have it in their config.json"),
	VALUE_REFUSED("config_name", "--model names a config.json, or a size such as base"),
	VALUE_REFUSED("config_overrides",
		"the sizes of a new model are options: --num_hidden_layers, --hidden_size, --num_attention_heads, "
		"--intermediate_size, --max_position_embeddings"),

	/* Text */
	FLAG_LEFT_OUT("streaming", "text of any size is read as it is needed"),
	VALUE_MEANS("train_data_file", "corpus"),
	VALUE_MEANS("eval_data_file", "eval_corpus"),
	VALUE_MEANS("block_size", "max_seq_length"),
	VALUE_REFUSED("dataset_name dataset_config_name",
		"training downloads nothing: --corpus names files of text, and `bertc download` fetches some corpora by name"),
	VALUE_REFUSED("max_train_samples max_eval_samples",
		"--num_train_steps sets how much is trained on, --eval_instances how much is scored"),
	VALUE_REFUSED("validation_split_percentage", "--held_out_fraction is the share of documents kept out of training"),
	VALUE_LEFT_OUT("dupe_factor", "new masks are drawn in every pass; --num_train_epochs sets the number of passes"),
	VALUE_REFUSED("output_file", "training generates its instances on the fly; `bertc prepare` writes token shards"),
	VALUE_REFUSED("tokenizer_name", "--vocab_file names the vocabulary, and --cased says whether upper case is kept"),
	VALUE_REFUSED_BUT("tokenizer_type", "BertWordPieceLowerCase",
		"the tokenizer is BERT's WordPiece; --cased keeps upper case (BertWordPieceCase)"),
	FLAG_LEFT_OUT("line_by_line", "--text_form sentences means one sentence per line; otherwise bertc detects the form"),
	FLAG_REFUSED("bert_no_binary_head", "--next_sentence none trains on running text without pairs"),
	VALUE_LEFT_OUT("num_dataset_workers num_batch_workers", "data loading uses one thread in addition to --threads"),

	/* Batches */
	VALUE_REFUSED_BUT("label_smoothing_factor", "0 0.0", "the loss is plain cross entropy"),
	VALUE_LEFT_OUT("eval_batch_size per_device_eval_batch_size per_gpu_eval_batch_size total_batch_size_eval",
		"evaluation computes as many tokens at a time as --micro_batch_tokens allows; the result does not depend on it"),
	VALUE_LEFT_OUT("max_eval_steps eval_iters",
		"it counts batches, and bertc counts instances: --eval_instances sets how many held-out instances are scored"),
	FLAG_LEFT_OUT("no_dense_sequence_output", "the masked-word head computes masked positions only"),

	/* Megatron-LM */
	VALUE_REFUSED("kv_channels", "a head has --hidden_size / --num_attention_heads columns"),
	VALUE_MEANS("data_path", "data"),
	VALUE_MEANS("save", "out"),
	VALUE_REFUSED("load",
		"a run automatically resumes from its newest checkpoint; --resume_from names another one, and --init_checkpoint "
		"the weights to begin with"),
	VALUE_REFUSED("split", "shards are trained on as a whole; --eval_data names those to evaluate on"),
	VALUE_REFUSED("lr_decay_iters",
		"the rate decays over all steps of the run, by --schedule, and ends at --min_learning_rate"),
	VALUE_LEFT_OUT("tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size",
		"each rank computes with a whole model, and the optimizer's state is shared out among the ranks"),
	FLAG_LEFT_OUT("use_distributed_optimizer", "the optimizer's state is always shared out among the ranks"),
	VALUE_LEFT_OUT("distributed_backend", RANKS_WHY),
	VALUE_LEFT_OUT("loss_scale_window hysteresis min_loss_scale", "a dynamic loss scale follows its own rules"),
	VALUE_LEFT_OUT("transformer_impl attention_backend spec ckpt_format dataloader_type eod_mask_loss",
		"there is one implementation, in this program"),

	/* Reports */
	VALUE_LEFT_OUT("profile_start", "`bertc bench` measures each operation"),
	VALUE_LEFT_OUT("save_strategy logging_strategy evaluation_strategy eval_strategy",
		"use --save_checkpoints_steps, --log_steps and --eval_steps"),
	{.rest = training_foreign},
};
