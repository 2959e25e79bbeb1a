/* Names from other programs that mean the same in all training commands. */
#include "cmd/foreign_rows.h"

#include "run/batch_options.h"

#define METRICS_WHY "metrics.jsonl in the run folder, --out, records every logged step as a JSON object"
#define LABEL_WHY "only a label; --model sets the architecture"
#define UPLOAD_WHY "--out is a folder; its final/ can be uploaded as it is"
#define TOKEN_WHY "HF_TOKEN in the environment gives access to private models of the Hub"
#define LOADER_WHY "data loading uses one thread in addition to --threads"
#define MEMORY_WHY "memory is planned before the run starts; a smaller --micro_batch_tokens needs less"
#define KERNELS_WHY "kernels are fused and compiled into the program"
#define SHARDS_WHY                                                                                                               \
	"with several ranks, each keeps its share of the optimizer's moments without any configuration, as in ZeRO stage 1"
#define MEASURES_WHY "the measures of a whole set are always computed, in one pass"

/* clang-format off */
const struct option_foreign training_foreign[] = {
	/* Checkpoints, casing, the loop. */
	{.name = "resume_from_checkpoint resume", .kind = FOREIGN_EITHER, .answer = FOREIGN_IGNORED, .option = "resume_from",
	 .why = "a run automatically resumes from its newest checkpoint; --resume_from names another one"},
	{.name = "skip_checkpoint", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "save_checkpoints_steps",
	 .value = "0",
	 .why = "the finished model is always saved"},
	{.name = "do_lower_case", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "cased"},
	VALUE_LEFT_OUT("iterations_per_loop steps_per_loop", "there is no device loop; --log_steps sets how often bertc logs"),

	/* Precision, device, ranks, reports. */
	FLAG_LEFT_OUT("fp16 amp manual_fp16 use_fp16",
		"mixed precision is the default: bf16 where the device supports it, fp16 with a dynamic loss scale on older "
		"GPUs; --precision bf16 or --precision fp16 insists on one of them (fp16 needs a GPU)"),
	FLAG_MEANS("bf16", "precision", "bf16"),
	FLAG_LEFT_OUT("tf32",
		"--precision tf32 computes matrix products in TF32 on GPUs; the default is bf16 where the device supports it"),
	FLAG_MEANS("no_cuda use_cpu", "device", "cpu"),
	FLAG_LEFT_OUT("use_xla disable_jit_fusions cuda_graphs", "kernels are fused and compiled into the program"),
	FLAG_REFUSED("use_tpu", "bertc has no TPU back end; --device selects cpu or cuda"),
	VALUE_REFUSED("tpu", "bertc has no TPU back end; --device selects cpu or cuda"),
	VALUE_LEFT_OUT("tpu_name tpu_zone gcp_project master num_tpu_cores tpu_num_cores",
		"only a TPU needs it; --device selects cpu or cuda"),
	VALUE_LEFT_OUT("local_rank", RANKS_WHY),
	FLAG_LEFT_OUT("use_env", RANKS_WHY),
	{.name = "horovod use_horovod", .kind = FOREIGN_FLAG, .answer = FOREIGN_IGNORED,
	 .why = RANKS_WHY, .program = NVIDIA_TENSORFLOW},
	{.name = "json_summary", .kind = FOREIGN_VALUE, .answer = FOREIGN_IGNORED, .why = METRICS_WHY, .program = NVIDIA_PYTORCH},
	{.name = "dllog_path", .kind = FOREIGN_VALUE, .answer = FOREIGN_IGNORED,
	 .why = METRICS_WHY, .program = NVIDIA_TENSORFLOW},
	VALUE_LEFT_OUT("logging_dir tensorboard_dir", "TensorBoard event files are written into the run folder, --out"),
	FLAG_LEFT_OUT("report_loss verbose_logging verbose", "losses are always reported; -v prints more detail"),
	FLAG_LEFT_OUT("profile", "`bertc bench` measures each operation"),
	{.name = "bert_model", .kind = FOREIGN_VALUE, .answer = FOREIGN_IGNORED, .why = LABEL_WHY, .program = NVIDIA_PYTORCH},

	/* Of transformers' examples and its Trainer, of versions 4 and 5: models and their files. */
	VALUE_LEFT_OUT("cache_dir", "models of the Hub are in huggingface_hub's cache; HF_HUB_CACHE names another folder for it"),
	FLAG_LEFT_OUT("overwrite_cache", "nothing is kept between runs that would have to be redone"),
	FLAG_REFUSED("push_to_hub hub_private_repo hub_always_push", UPLOAD_WHY),
	VALUE_LEFT_OUT("hub_model_id hub_token hub_strategy hub_revision push_to_hub_model_id push_to_hub_organization "
		"push_to_hub_token", UPLOAD_WHY),
	FLAG_LEFT_OUT("use_fast_tokenizer use_slow_tokenizer", "there is one tokenizer, whose ids are those of both"),
	VALUE_REFUSED_BUT("model_revision", "main", "--model hf:OWNER/NAME@REVISION names a revision of a model of the Hub"),
	VALUE_LEFT_OUT("token", TOKEN_WHY),
	FLAG_LEFT_OUT("use_auth_token", TOKEN_WHY),
	FLAG_LEFT_OUT("trust_remote_code", "code in a model's folder is never run"),
	VALUE_REFUSED_BUT("torch_dtype dtype", "auto float32",
		"training always keeps the weights in fp32; --precision sets the numbers to compute in"),
	VALUE_REFUSED("neftune_noise_alpha", "no noise is added to the embeddings; --hidden_dropout_prob sets their dropout"),
	VALUE_LEFT_OUT("past_index", "BERT keeps no past states"),
	FLAG_LEFT_OUT("use_cache", "BERT keeps no past states"),

	/* Of the same: examples, their order, and how they get into batches. */
	VALUE_LEFT_OUT("preprocessing_num_workers dataloader_num_workers num_workers dataloader_prefetch_factor "
		"dataloader_multiprocessing_context", LOADER_WHY),
	FLAG_LEFT_OUT("dataloader_persistent_workers dataloader_in_order dispatch_batches", LOADER_WHY),
	FLAG_LEFT_OUT("dataloader_drop_last dataloader_pin_memory", "every example is used once in an epoch"),
	FLAG_LEFT_OUT("pad_to_max_length group_by_length", "sequences are packed end to end, so nothing is padded"),
	VALUE_LEFT_OUT("length_column_name", "sequences are packed end to end, so nothing is padded"),
	VALUE_REFUSED_BUT("train_sampling_strategy", "random group_by_length", "--shuffle false keeps the order of the data"),
	FLAG_LEFT_OUT("remove_unused_columns", "columns that are not used are not read"),
	{.name = "label_names", .kind = FOREIGN_VALUES, .answer = FOREIGN_IGNORED,
	 .why = "what the model's inputs and labels are follows from the task"},
	VALUE_REFUSED("data_seed shuffle_seed", "one seed, --seed, sets the order of the data and everything else"),
	FLAG_REFUSED("ignore_data_skip", "a resumed run always continues with the data that come next"),
	FLAG_LEFT_OUT("auto_find_batch_size",
		"the batch stays as it is; how much is computed at a time follows from the memory, or from --micro_batch_tokens"),
	FLAG_REFUSED("split_batches",
		"--train_batch_size is the batch of all devices together, and --per_device_train_batch_size that of one"),

	/* Of the same: optimizer, numbers, and devices. */
	VALUE_REFUSED_BUT("optim", "adamw adamw_hf adamw_torch adamw_torch_fused adamw_apex_fused",
		"--optimizer names what there is: adamw (the default, PyTorch's), google_adamw, lamb, nvlamb"),
	FLAG_REFUSED("adafactor", "--optimizer names what there is: adamw, google_adamw, lamb, nvlamb"),
	VALUE_REFUSED("optim_args optim_target_modules",
		"the optimizer's settings are options: --adam_beta1, --adam_epsilon, --exclude_from_weight_decay"),
	VALUE_REFUSED_BUT("lr_scheduler_kwargs", "{}",
		"the settings of --schedule are options: --min_learning_rate, --poly_degree, --num_decay_steps"),
	FLAG_LEFT_OUT("fp16_full_eval bf16_full_eval", "evaluation computes in the numbers of --precision"),
	VALUE_LEFT_OUT("fp16_opt_level half_precision_backend fp16_backend", "--precision sets the numbers to compute in"),
	FLAG_LEFT_OUT("torch_compile jit_mode_eval use_ipex use_liger_kernel", KERNELS_WHY),
	VALUE_LEFT_OUT("torch_compile_backend torch_compile_mode torchdynamo liger_kernel_config attn_implementation",
		KERNELS_WHY),
	FLAG_LEFT_OUT("checkpoint_activations activation_checkpointing gradient_checkpointing recompute_activations "
		"low_cpu_mem_usage", MEMORY_WHY),
	VALUE_LEFT_OUT("activation_checkpointing_kwargs gradient_checkpointing_kwargs eval_accumulation_steps "
		"torch_empty_cache_steps", MEMORY_WHY),
	FLAG_REFUSED("use_mps_device", "bertc has no back end for Apple's GPUs; --device selects cpu or cuda"),
	FLAG_LEFT_OUT("full_determinism", "the same command always gives the same model, bit for bit"),
	VALUE_LEFT_OUT("ddp_backend ddp_bucket_cap_mb", RANKS_WHY),
	FLAG_LEFT_OUT("ddp_find_unused_parameters ddp_broadcast_buffers ddp_static_graph", RANKS_WHY),
	VALUE_LEFT_OUT("ddp_timeout", "--watchdog_seconds sets how long a rank may be silent"),
	FLAG_LEFT_OUT("average_tokens_across_devices", "the loss is the mean over the whole batch, on any number of devices"),
	VALUE_LEFT_OUT("deepspeed sharded_ddp fsdp fsdp_config fsdp_min_num_params fsdp_transformer_layer_cls_to_wrap "
		"parallelism_config", SHARDS_WHY),
	VALUE_LEFT_OUT("accelerator_config",
		"its settings are options: --train_batch_size is the batch of all devices together, "
		"--per_device_train_batch_size that of one, --seed the order of the data"),
	VALUE_LEFT_OUT("mp_parameters", "each rank computes with a whole model"),

	/* Of the same: what is evaluated, logged, and saved, and when. */
	FLAG_LEFT_OUT("greater_is_better", "bertc knows in which direction each measure improves"),
	FLAG_LEFT_OUT("eval_on_start", "a new model is evaluated after the first --eval_steps"),
	VALUE_REFUSED_BUT("eval_delay", "0 0.0", "every --eval_steps counts when the best checkpoint is chosen"),
	FLAG_LEFT_OUT("prediction_loss_only eval_do_concat_batches batch_eval_metrics eval_use_gather_object "
		"include_inputs_for_metrics use_legacy_prediction_loop", MEASURES_WHY),
	{.name = "include_for_metrics", .kind = FOREIGN_VALUES, .answer = FOREIGN_IGNORED, .why = MEASURES_WHY},
	FLAG_LEFT_OUT("save_safetensors", "models are always written as model.safetensors"),
	FLAG_LEFT_OUT("save_only_model", "checkpoints always have what resuming needs; final/ is the model alone"),
	VALUE_REFUSED("checkpointing_steps", "--save_checkpoints_steps sets the steps between checkpoints"),
	FLAG_LEFT_OUT("save_on_each_node log_on_each_node", "a run has one folder, --out, which its first rank writes"),
	FLAG_LEFT_OUT("restore_callback_states_from_checkpoint", "a checkpoint always has the whole state of a run"),
	FLAG_LEFT_OUT("enable_jit_checkpoint", "a run always saves before it ends on SIGTERM"),
	VALUE_MEANS("max_train_steps", "num_train_steps"),
	VALUE_LEFT_OUT("report_to run_name project trackio_space_id trackio_bucket_id trackio_static_space_id log_level "
		"log_level_replica", "metrics.jsonl in the run folder records every logged step"),
	FLAG_LEFT_OUT("with_tracking include_tokens_per_second skip_memory_metrics tpu_metrics_debug",
		"metrics.jsonl in the run folder records every logged step"),
	{.name = "include_num_input_tokens_seen", .kind = FOREIGN_EITHER, .answer = FOREIGN_IGNORED,
	 .why = "metrics.jsonl in the run folder records the tokens of every logged step"},
	FLAG_LEFT_OUT("logging_first_step", "losses are always reported; -v prints more detail"),
	FLAG_LEFT_OUT("logging_nan_inf_filter", "a loss that is not finite is always reported"),
	VALUE_LEFT_OUT("debug", "a loss that is not finite is always reported"),
	VALUE_LEFT_OUT("ray_scope", "there is no search with Ray"),
	FLAG_LEFT_OUT("disable_tqdm", "--no_progress hides the progress bar"),
	{0},
};
