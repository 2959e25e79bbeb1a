/* Rows for other programs' options that all training commands share, and macros for such rows. */
#ifndef CMD_FOREIGN_ROWS_H
#define CMD_FOREIGN_ROWS_H

#include "base/option.h"

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

/* Programs whose train_batch_size is not the batch of all devices together. */
#define NVIDIA_PYTORCH "NVIDIA's PyTorch scripts"
#define NVIDIA_TENSORFLOW "NVIDIA's TensorFlow scripts"

#define RANKS_WHY                                                                                                                \
	"--n_gpus N or --ranks N starts the processes of one machine; across machines, start bertc under torchrun, mpirun, or "  \
	"srun, and each process finds its rank in the environment"

#define METRICS_WHY "metrics.jsonl in the run folder, --out, records every logged step as a JSON object"
#define LABEL_WHY "only a label; --model sets the architecture"

/* Precision, device, ranks, reports. */
#define FOREIGN_MACHINE_ROWS                                                                                                     \
	FLAG_LEFT_OUT(                                                                                                           \
		"fp16 amp manual_fp16 use_fp16",                                                                                 \
		"mixed precision is the default: bf16 where the device supports it, fp16 with a dynamic loss scale on older "    \
		"GPUs; --precision bf16 or --precision fp16 insists on one of them (fp16 needs a GPU)"),                         \
		{.name = "bf16", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "precision", .value = "bf16"},         \
		FLAG_LEFT_OUT("tf32", "--precision tf32 computes matrix products in TF32 on GPUs; the default is bf16 where "    \
				      "the device supports it"),                                                                 \
		{.name = "no_cuda use_cpu", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "device", .value = "cpu"},  \
		FLAG_LEFT_OUT("use_xla disable_jit_fusions cuda_graphs", "kernels are fused and compiled into the program"),     \
		FLAG_REFUSED("use_tpu", "bertc has no TPU back end; --device selects cpu or cuda"),                              \
		VALUE_REFUSED("tpu", "bertc has no TPU back end; --device selects cpu or cuda"),                                 \
		VALUE_LEFT_OUT("tpu_name tpu_zone gcp_project master num_tpu_cores",                                             \
			       "only a TPU needs it; --device selects cpu or cuda"),                                             \
		VALUE_LEFT_OUT("local_rank", RANKS_WHY), FLAG_LEFT_OUT("use_env", RANKS_WHY),                                    \
		{.name = "horovod use_horovod",                                                                                  \
		 .kind = FOREIGN_FLAG,                                                                                           \
		 .answer = FOREIGN_IGNORED,                                                                                      \
		 .why = RANKS_WHY,                                                                                               \
		 .program = NVIDIA_TENSORFLOW},                                                                                  \
		{.name = "json_summary",                                                                                         \
		 .kind = FOREIGN_VALUE,                                                                                          \
		 .answer = FOREIGN_IGNORED,                                                                                      \
		 .why = METRICS_WHY,                                                                                             \
		 .program = NVIDIA_PYTORCH},                                                                                     \
		{.name = "dllog_path",                                                                                           \
		 .kind = FOREIGN_VALUE,                                                                                          \
		 .answer = FOREIGN_IGNORED,                                                                                      \
		 .why = METRICS_WHY,                                                                                             \
		 .program = NVIDIA_TENSORFLOW},                                                                                  \
		VALUE_LEFT_OUT("logging_dir tensorboard_dir", "TensorBoard event files are written into the run folder, --out"), \
		FLAG_LEFT_OUT("report_loss verbose_logging verbose", "losses are always reported; -v prints more detail"),       \
		FLAG_LEFT_OUT("profile", "`bertc bench` measures each operation"),                                               \
		{.name = "bert_model",                                                                                           \
		 .kind = FOREIGN_VALUE,                                                                                          \
		 .answer = FOREIGN_IGNORED,                                                                                      \
		 .why = LABEL_WHY,                                                                                               \
		 .program = NVIDIA_PYTORCH},                                                                                     \
		VALUE_LEFT_OUT("model_type", LABEL_WHY)

/* Arguments of transformers' examples and its Trainer that mean the same in every script. */
#define FOREIGN_TRANSFORMERS_ROWS                                                                                                \
	VALUE_LEFT_OUT("cache_dir", "nothing is downloaded or kept between runs"),                                               \
		FLAG_LEFT_OUT("overwrite_cache", "nothing is kept between runs that would have to be redone"),                   \
		FLAG_REFUSED("push_to_hub", "--out is a folder; its final/ can be uploaded as it is"),                           \
		VALUE_REFUSED("hub_model_id hub_token", "--out is a folder; its final/ can be uploaded as it is"),               \
		FLAG_LEFT_OUT("use_fast_tokenizer use_slow_tokenizer", "there is one tokenizer, whose ids are those of both"),   \
		VALUE_LEFT_OUT("model_revision token", "models are folders on this machine"),                                    \
		FLAG_LEFT_OUT("trust_remote_code use_auth_token low_cpu_mem_usage", "models are folders on this machine"),       \
		VALUE_LEFT_OUT("preprocessing_num_workers dataloader_num_workers num_workers",                                   \
			       "data loading uses one thread in addition to --threads"),                                         \
		FLAG_LEFT_OUT("dataloader_drop_last dataloader_pin_memory", "every example is used once in an epoch"),           \
		FLAG_LEFT_OUT("pad_to_max_length group_by_length", "sequences are packed end to end, so nothing is padded"),     \
		FLAG_LEFT_OUT("remove_unused_columns", "columns that are not used are not read"),                                \
		VALUE_LEFT_OUT("greater_is_better", "bertc knows in which direction each measure improves"),                     \
		{.name = "optim",                                                                                                \
		 .kind = FOREIGN_VALUE,                                                                                          \
		 .answer = FOREIGN_REFUSED,                                                                                      \
		 .value = "adamw adamw_hf adamw_torch adamw_torch_fused adamw_apex_fused",                                       \
		 .why = "--optimizer names what there is: adamw (the default, PyTorch's), google_adamw, lamb, nvlamb"},          \
		FLAG_LEFT_OUT("fp16_full_eval bf16_full_eval", "evaluation computes in the numbers of --precision"),             \
		VALUE_LEFT_OUT("fp16_opt_level half_precision_backend fp16_backend",                                             \
			       "--precision sets the numbers to compute in"),                                                    \
		FLAG_LEFT_OUT("torch_compile jit_mode_eval use_ipex", "kernels are fused and compiled into the program"),        \
		FLAG_LEFT_OUT("checkpoint_activations gradient_checkpointing recompute_activations",                             \
			      "memory is planned before the run starts; a smaller --micro_batch_tokens needs less"),             \
		VALUE_LEFT_OUT("ddp_backend ddp_find_unused_parameters", RANKS_WHY),                                             \
		VALUE_LEFT_OUT("deepspeed", "with several ranks, each keeps its share of the optimizer's moments without any "   \
					    "configuration, as in ZeRO stage 1"),                                                \
		VALUE_LEFT_OUT("report_to run_name log_level", "metrics.jsonl in the run folder records every logged step"),     \
		FLAG_LEFT_OUT("logging_first_step", "losses are always reported; -v prints more detail"),                        \
		FLAG_LEFT_OUT("disable_tqdm", "--no_progress hides the progress bar")

#endif
