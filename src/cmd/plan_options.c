#include "cmd/plan.h"

#define FIELD(name) offsetof(struct plan_settings, name)

const struct option plan_options[] = {
	{.help = "What is trained"},
	{.name = "model", .type = OPTION_TEXT, .field = FIELD(model), .fallback = "base", .role = ROLE_RUN,
	 .value_name = "WHAT", .alias = "bert_config_file config_file model_name_or_path",
	 .help = "tiny, mini, small, medium, base, large, a config.json, or a model folder"},
	{.name = "vocab_size", .type = OPTION_INTEGER, .field = FIELD(vocab_size), .fallback = "30522", .range = "8..10000000",
	 .role = ROLE_RUN, .value_name = "N", .help = "entries of the vocabulary where the model does not say"},
	{.name = "optimizer", .type = OPTION_CHOICE, .field = FIELD(optimizer), .fallback = "adamw",
	 .range = "adamw|google_adamw|lamb|nvlamb", .role = ROLE_RUN, .value_name = "NAME", .help = "what updates the weights"},
	{.name = "precision", .type = OPTION_CHOICE, .field = FIELD(precision), .range = "fp32|tf32|fp16|bf16|fp8",
	 .role = ROLE_RUN, .value_name = "TYPE", .fallback_text = "the fastest 16 bits of the device",
	 .help = "type of activations and matrix products; masters are always fp32"},
	{.name = "max_seq_length", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(max_seq_length),
	 .range = "8..65536", .fallback = "128", .role = ROLE_RUN, .value_name = "N", .alias = "seq_length",
	 .help = "most tokens of an instance"},
	{.name = "mean_seq_length", .section = "phase", .type = OPTION_NUMBER, .field = FIELD(mean_seq_length), .range = "1..65536",
	 .role = ROLE_RUN, .value_name = "X", .fallback_text = "max_seq_length",
	 .help = "mean tokens of an instance: nothing is padded, so shorter text is less work"},
	{.name = "masked_lm_prob", .section = "phase", .type = OPTION_NUMBER, .field = FIELD(masked_lm_prob),
	 .range = "0.01..0.9", .fallback = "0.15", .role = ROLE_RUN, .value_name = "P", .alias = "mlm_probability mask_prob",
	 .help = "share of tokens to predict"},
	{.name = "max_predictions_per_seq", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(max_predictions_per_seq),
	 .range = "0..65536", .fallback = "0", .role = ROLE_RUN, .value_name = "N",
	 .help = "most predictions of an instance; 0 = no cap"},

	{.help = "How long, and in what pieces"},
	{.name = "num_train_steps", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(num_train_steps), .range = "1..",
	 .role = ROLE_RUN, .value_name = "N", .alias = "max_steps train_iters", .fallback_text = "from tokens or samples",
	 .help = "optimiser updates"},
	{.name = "num_train_tokens", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(num_train_tokens), .range = "1..",
	 .role = ROLE_RUN, .value_name = "N", .fallback_text = "not used", .help = "tokens to train on, instead of steps"},
	{.name = "num_train_samples", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(num_train_samples), .range = "1..",
	 .role = ROLE_RUN, .value_name = "N", .fallback_text = "not used", .help = "instances to train on, instead of steps"},
	{.name = "train_batch_size", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(train_batch_size),
	 .range = "1..1048576", .fallback = "256", .role = ROLE_RUN, .value_name = "N", .alias = "global_batch_size",
	 .help = "instances an update, over all devices and accumulation"},
	{.name = "train_batch_size_per_gpu", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(batch_size_per_gpu),
	 .range = "1..1048576", .role = ROLE_RUN, .value_name = "N", .alias = "train_batch_size_per_rank",
	 .fallback_text = "not used", .help = "instances an update of each device and replica, instead of all"},
	{.name = "replicas_per_gpu", .type = OPTION_INTEGER, .field = FIELD(replicas), .range = "1..1024", .fallback = "1",
	 .role = ROLE_RUN, .value_name = "R", .alias = "replicas_per_rank",
	 .help = "shares of so many devices that each computes, one after the other"},
	{.name = "gradient_accumulation_steps", .section = "phase", .type = OPTION_INTEGER,
	 .field = FIELD(gradient_accumulation_steps), .range = "0..65536", .fallback = "0", .role = ROLE_RUN, .value_name = "N",
	 .alias = "num_accumulation_steps", .help = "micro-batches an update of each device and replica; 0 = as few as memory allows"},
	{.name = "micro_batch_tokens", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(micro_batch_tokens),
	 .range = "128..1048576", .role = ROLE_RUN, .value_name = "N", .fallback_text = "8192; on GPUs what fits the memory",
	 .help = "most tokens a device computes at a time, without gradient_accumulation_steps"},
	{.name = "save_checkpoints_steps", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(save_checkpoints_steps),
	 .range = "0..", .role = ROLE_RUN, .value_name = "N", .alias = "save_steps num_steps_per_checkpoint save_interval",
	 .fallback_text = "a twentieth of the run", .help = "steps between checkpoints; 0 = only at the end"},
	{.name = "eval_steps", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(eval_steps), .range = "0..",
	 .role = ROLE_RUN, .value_name = "N", .fallback_text = "a twentieth of the run", .alias = "eval_interval",
	 .help = "steps between evaluations; 0 = only at the end"},
	{.name = "eval_instances", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(eval_instances), .range = "0..",
	 .fallback = "1000", .role = ROLE_RUN, .value_name = "N", .help = "held-out instances scored"},
	{.name = "within", .type = OPTION_TEXT, .field = FIELD(within), .role = ROLE_RUN, .value_name = "TIME",
	 .fallback_text = "not asked", .help = "say how many devices finish in this time: 3d, 12h, 1-12:00:00"},

	{.help = "On what"},
	{.name = "gpus", .type = OPTION_INTEGER, .field = FIELD(gpus), .range = "1..1000000", .role = ROLE_RUN, .value_name = "N",
	 .alias = "n_gpus", .fallback_text = "none: CPUs", .help = "GPUs in all"},
	{.name = "ranks", .type = OPTION_INTEGER, .field = FIELD(ranks), .range = "1..1000000", .role = ROLE_RUN,
	 .value_name = "N", .fallback_text = "1", .help = "processes on CPUs in all, each with --threads cores of one like this"},
	{.name = "gpus_per_node", .type = OPTION_INTEGER, .field = FIELD(per_host), .range = "1..1024", .role = ROLE_RUN,
	 .value_name = "N", .alias = "ranks_per_node n_gpus_per_node", .fallback_text = "what such GPUs come in; CPUs: all in one",
	 .help = "devices of a host"},
	{.name = "device_kind", .type = OPTION_TEXT, .field = FIELD(device_kind), .role = ROLE_RUN, .value_name = "NAME",
	 .alias = "gpu", .fallback_text = "h200 where there are GPUs",
	 .help = "b200, h200, h100, a100, a100_40, a30, rtx4090, v100, v100_16, t4 or p100"},
	{.name = "threads", .letter = 'j', .type = OPTION_INTEGER, .field = FIELD(threads), .range = "0..4096", .fallback = "0",
	 .role = ROLE_RUN, .value_name = "N", .help = "cores of a CPU rank; 0 = those of this machine, shared by its ranks"},
	{.name = "device_rate", .section = "phase", .type = OPTION_NUMBER, .field = FIELD(device_rate), .range = "0.000001..",
	 .role = ROLE_RUN, .value_name = "X", .fallback_text = "from the rates",
	 .help = "sequences/s that one device alone is known to train: the plan's times are scaled to it"},
	{.name = "device_rate_batch", .section = "phase", .type = OPTION_INTEGER, .field = FIELD(device_rate_batch),
	 .range = "1..1048576", .role = ROLE_RUN, .value_name = "N", .fallback_text = "those of the plan",
	 .help = "sequences of the micro-batches with which device_rate was seen"},
	{.name = "profile", .type = OPTION_TEXT, .field = FIELD(profile), .role = ROLE_RUN, .value_name = "FILE",
	 .fallback_text = "not used", .help = "take the device's rates from what `bertc bench --json` printed on it"},
	{.name = "measure", .type = OPTION_FLAG, .field = FIELD(measure), .role = ROLE_RUN,
	 .fallback_text = "true on CPUs", .help = "measure the rates of this machine now"},
	{.name = "device_memory", .type = OPTION_NUMBER, .field = FIELD(device_memory), .range = "0.1..", .role = ROLE_RUN,
	 .value_name = "GB", .fallback_text = "the kind's; CPUs: this machine's", .help = "memory of a GPU, or of a host of CPUs"},
	{.name = "disk_rate", .type = OPTION_NUMBER, .field = FIELD(disk_rate), .range = "0.001..", .fallback = "0.2",
	 .role = ROLE_RUN, .value_name = "GB/s", .help = "rate at which checkpoints are written"},

	{.help = "Over what links"},
	{.name = "link", .type = OPTION_TEXT, .field = FIELD(link), .role = ROLE_RUN, .value_name = "NAME|GB/s",
	 .fallback_text = "what hosts of such devices have",
	 .help = "each network card between hosts: ndr, hdr, edr, roce400, 100gbe, 25gbe, 10gbe, 1gbe, or its GB/s"},
	{.name = "cards", .type = OPTION_INTEGER, .field = FIELD(cards), .range = "1..64", .role = ROLE_RUN, .value_name = "N",
	 .alias = "rails nics", .fallback_text = "what hosts of such devices have", .help = "network cards of a host"},
	{.name = "local_link", .type = OPTION_TEXT, .field = FIELD(local_link), .role = ROLE_RUN, .value_name = "NAME|GB/s",
	 .fallback_text = "what such devices have; CPUs: shared, measured",
	 .help = "between devices of a host: nvlink5, nvlink4, nvlink3, nvlink2, pcie5, pcie4, pcie3, shared, or GB/s of bus "
		 "bandwidth"},
	{.name = "scheme", .type = OPTION_CHOICE, .field = FIELD(scheme), .fallback = "sharded",
	 .range = "sharded|all_reduce|hierarchical", .role = ROLE_RUN, .value_name = "HOW",
	 .help = "sharded: what bertc does, each device updates its share; the others are how other programs do it, for "
		 "comparison"},
	{.name = "bucket_size", .type = OPTION_NUMBER, .field = FIELD(bucket_size), .range = "0..", .fallback = "0",
	 .role = ROLE_RUN, .value_name = "MB", .help = "gradients are reduced in whole layers of at least so many MB; 0 = each layer"},
	{.name = "allreduce_post_accumulation", .type = OPTION_FLAG, .field = FIELD(post_accumulation), .fallback = "true",
	 .role = ROLE_RUN, .help = "gradients are summed over ranks once an update; false: after every micro-batch"},
	{.name = "allreduce_post_accumulation_fp16", .type = OPTION_FLAG, .field = FIELD(gradients_fp16), .fallback = "false",
	 .role = ROLE_RUN, .alias = "allreduce_fp16", .help = "gradients travel in fp16, half the bytes"},
	{.name = "allreduce_post_accumulation_bf16", .type = OPTION_FLAG, .field = FIELD(gradients_bf16), .fallback = "false",
	 .role = ROLE_RUN, .alias = "allreduce_bf16", .help = "the same in bf16"},
	{.help = "Output"},
	{.name = "json", .type = OPTION_FLAG, .field = FIELD(json), .fallback = "false", .role = ROLE_RUN,
	 .help = "print one JSON object"},
	{0},
};

const struct command_text plan_text = {
	.name = "plan",
	.synopsis = "[--model SIZE] [--gpus N|--ranks N] [--config RECIPE] [options]",
	.summary = "memory, time and scaling of a training run on machines that need not be here",
	.description =
		"Adds up the memory of each device with the code that allocates it, computes the time of a step from the rates "
		"of the device and the links between devices, and from it the throughput, the efficiency and the length of the "
		"run; says what limits it and what to change. Every figure it rests on is listed with where it comes from: "
		"given, measured, published or estimated.\n\n"
		"Rates of a device come from a measurement on it where there is one: --profile FILE with what `bertc bench "
		"--json` printed there, or --measure here and now; --device_rate scales them to a known throughput. Without, "
		"those of GPUs come from a table.\n\n"
		"Options of pretrain are taken under their names, config files with phases too (recipes/nvidia_lamb.conf); those "
		"that change nothing here are left aside. docs/parallel.md has the formulas, docs/results.md how they compare "
		"with published runs.",
	.examples =
		"bertc plan --config recipes/nvidia_lamb.conf --gpus 256 --device_kind a100\tNVIDIA's recipe on 32 hosts\n"
		"bertc plan --model large --gpus 8 --num_train_tokens 137000000000 --within 3d\twhat fits in three days\n"
		"bertc plan --model base --ranks 4 --threads 1 --measure\tfour processes on this machine\n"
		"bertc bench --json >h200.json && bertc plan --gpus 64 --profile h200.json\tfrom one device to many",
};
