/* The option table of `bertc plan`, and its help. */
#include "cmd/plan/plan_options.h"

#include "cmd/foreign_rows.h"
#include "cmd/pretrain/pretrain_options.h"

#define FIELD(name) offsetof(struct plan_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct plan_settings, member, role, value)

/* clang-format off */
const struct option plan_options[] = {
	{.help = "What is trained"},
	{.group = training_rows, .only = "recipe", .field = FIELD(training)},
	{ROW(model, ROLE_RUN, "WHAT"), .fallback = "base", .alias = "bert_config_file config_file model_name_or_path",
	 .help = MODEL_SIZES(", ") ", a config.json, or a model folder"},
	{.group = model_size_rows, .field = FIELD(sizes)},
	{ROW(vocab_size, ROLE_RUN, "N"), .range = "8..10000000", .fallback = "30522",
	 .help = "entries of the vocabulary, if the model does not say"},
	{.group = optimizer_rows, .only = "optimizer", .field = FIELD(training.optimizer)},
	{.reworded = true, .name = "optimizer", .help = "what updates the weights"},
	{ROW(precision, ROLE_RUN, "TYPE"), .range = "fp32|tf32|fp16|bf16|fp8",
	 .fallback_text = "the fastest 16 bits of the device",
	 .help = "type of activations and matrix products; masters are always fp32"},
	{.group = training_rows, .only = "max_seq_length", .field = FIELD(training)},
	{.reworded = true, .name = "max_seq_length", .fallback = "128"},
	{ROW(mean_seq_length, ROLE_RUN, "X"), .section = "phase", .range = "1..65536", .fallback_text = "max_seq_length",
	 .help = "mean number of tokens per instance: nothing is padded, so shorter text is less work"},
	{.group = instance_rows, .only = "masked_lm_prob max_predictions_per_seq", .field = FIELD(instances)},

	{.help = "Length and batches"},
	{.group = length_rows, .only = "num_train_steps num_train_tokens", .shown = true, .field = FIELD(training.length)},
	{.reworded = true, .name = "num_train_steps", .fallback_text = "from tokens or samples"},
	{.reworded = true, .name = "num_train_tokens", .help = "tokens to train on, instead of steps"},
	{ROW(num_train_samples, ROLE_RUN, "N"), .section = "phase", .range = "1..", .fallback_text = "not used",
	 .help = "instances to train on, instead of steps"},
	{.group = batch_rows, .only = "train_batch_size train_batch_size_per_gpu", .shown = true, .field = FIELD(training.batch)},
	{.reworded = true, .name = "train_batch_size", .fallback = "256"},
	{.group = ranks_rows, .only = "replicas_per_gpu", .shown = true, .field = FIELD(training.ranks)},
	{.group = batch_rows, .only = "gradient_accumulation_steps micro_batch_tokens", .shown = true,
	 .field = FIELD(training.batch)},
	{.reworded = true, .name = "micro_batch_tokens", .fallback_text = "8192; on GPUs what fits the memory"},
	{.group = saving_rows, .only = "save_checkpoints_steps eval_steps", .field = FIELD(training.saving)},
	{ROW(eval_instances, ROLE_RUN, "N"), .section = "phase", .range = "0..", .fallback = "1000",
	 .help = "number of held-out instances to score"},
	{ROW(within, ROLE_RUN, "TIME"), .fallback_text = "not asked",
	 .help = "also find the number of devices that finish in this time: 3d, 12h, 1-12:00:00"},

	{.help = "Devices"},
	{ROW(gpus, ROLE_RUN, "N"), .range = "1..1000000", .alias = "n_gpus", .fallback_text = "none: CPUs",
	 .help = "GPUs in all"},
	{ROW(ranks, ROLE_RUN, "N"), .range = "1..1000000", .fallback_text = "1",
	 .help = "total number of CPU processes, each on --threads cores of a machine like this one"},
	{ROW(gpus_per_node, ROLE_RUN, "N"), .range = "1..1024", .alias = "ranks_per_node n_gpus_per_node",
	 .fallback_text = "as such GPUs are usually sold; CPUs: all in one host",
	 .help = "devices of a host"},
	{ROW(device_kind, ROLE_RUN, "NAME"), .alias = "gpu", .fallback_text = "h200 where there are GPUs",
	 .help = "b200, h200, h100, a100, a100_40, a30, rtx4090 or t4"},
	{ROW(threads, ROLE_RUN, "N"), .letter = 'j', .range = "0..4096", .fallback = "0",
	 .help = "cores per CPU rank; 0 = this machine's cores, divided among its ranks"},
	{ROW(device_rate, ROLE_RUN, "X"), .section = "phase", .range = "0.000001..", .fallback_text = "from the rates",
	 .help = "measured training throughput of one device in sequences/s; the plan's times are scaled to match it"},
	{ROW(device_rate_batch, ROLE_RUN, "N"), .section = "phase", .range = "1..1048576", .fallback_text = "those of the plan",
	 .help = "sequences per micro-batch at which device_rate was measured"},
	{ROW(device_memory, ROLE_RUN, "GB"), .range = "0.1..", .fallback_text = "the kind's; CPUs: this machine's",
	 .help = "memory of a GPU, or of a host of CPUs"},

	{.help = "Links"},
	{ROW(link, ROLE_RUN, "NAME|GB/s"), .fallback_text = "as hosts of such devices usually have",
	 .help = "the network cards between hosts, by name (ndr, hdr, 100gbe, 10gbe) or by bandwidth in GB/s"},
	{ROW(cards, ROLE_RUN, "N"), .range = "1..64", .alias = "rails nics", .fallback_text = "as hosts of such devices "
		 "usually have",
	 .help = "network cards of a host"},
	{ROW(local_link, ROLE_RUN, "NAME|GB/s"), .fallback_text = "as such devices have; CPUs: shared, measured",
	 .help = "between devices of a host: nvlink5, nvlink4, nvlink3, pcie4, pcie3, shared, or GB/s of bus bandwidth"},
	{ROW(bucket_size, ROLE_RUN, "MB"), .range = "0..", .fallback = "0",
	 .help = "reduce gradients in groups of whole layers of at least this many MB; 0 = layer by layer"},
	{.group = ranks_rows, .shown = true, .field = FIELD(training.ranks),
	 .only = "allreduce_post_accumulation allreduce_post_accumulation_fp16 allreduce_post_accumulation_bf16"},
	{.help = "Output"},
	{ROW(json, ROLE_RUN, NULL), .fallback = "false", .help = "print one JSON object"},
	{0},
};
/* clang-format on */

const struct option_foreign plan_removed[] = {
	VALUE_LEFT_OUT("scheme", "it was removed; a plan is of what bertc does: each device updates its share of the weights"),
	VALUE_LEFT_OUT("profile", "it was removed; --device_rate gives a known throughput of a device"),
	FLAG_LEFT_OUT("measure no_measure", "it was removed; CPUs are always measured, GPUs never"),
	VALUE_LEFT_OUT("disk_rate", "it was removed; checkpoints are written while training continues"),
	{0},
};

const struct command_text plan_text = {
	.name = "plan",
	.synopsis = "[--model SIZE] [--gpus N|--ranks N] [--config RECIPE] [options]",
	.summary = "estimate memory, time, and scaling of a training run without the machines",
	.description = "Adds up the memory of each device with the same code that allocates it; computes the time of a step "
		       "from the speed of the device and of the links between devices, and from that the throughput, "
		       "efficiency, and length of the run; and says what limits the run and what to change. For every figure "
		       "it shows the source: given, measured, published, or estimated.\n\n"
		       "The speed of CPUs is measured on this machine, that of GPUs comes from a table; --device_rate scales "
		       "it to a known throughput.\n\n"
		       "Options of pretrain are accepted under the same names, and so are config files with phases "
		       "(recipes/nvidia_lamb.conf); those that make no difference here are ignored. docs/parallel.md has the "
		       "formulas, docs/results.md compares them with published runs.",
	.examples = "bertc plan --config recipes/nvidia_lamb.conf --gpus 256 --device_kind a100\tNVIDIA's recipe on 32 hosts\n"
		    "bertc plan --model large --gpus 8 --num_train_tokens 137000000000 --within 3d\twhat fits in three days\n"
		    "bertc plan --model base --ranks 4 --threads 1\tfour processes on this machine",
};
