/* Rows of the tables of other programs' options that all commands that train share, and macros for such rows. */
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

#define RANKS_WHY                                                                                                                \
	"--n_gpus N or --ranks N starts the processes of one machine; across machines, start bertc under torchrun, mpirun, or "  \
	"srun, and each process finds its rank in the environment"

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
		VALUE_LEFT_OUT("local_rank", RANKS_WHY), FLAG_LEFT_OUT("use_env horovod use_horovod", RANKS_WHY),                \
		VALUE_LEFT_OUT("json_summary dllog_path",                                                                        \
			       "metrics.jsonl in the run folder, --out, records every logged step as a JSON object"),            \
		VALUE_LEFT_OUT("logging_dir tensorboard_dir", "TensorBoard event files are written into the run folder, --out"), \
		FLAG_LEFT_OUT("report_loss verbose_logging verbose", "losses are always reported; -v prints more detail"),       \
		FLAG_LEFT_OUT("profile", "`bertc bench` measures each operation"),                                               \
		VALUE_LEFT_OUT("bert_model model_type", "only a label; --model sets the architecture")

#endif
