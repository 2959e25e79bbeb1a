/* The option table of `bertc pretrain`, and its help. */
#include "cmd/pretrain/pretrain_options.h"

#define FIELD(name) offsetof(struct pretraining_options, name)
#define ROW(member, role, value) OPTION_ROW(struct pretraining_options, member, role, value)

/* clang-format off */
const struct option pretrain_options[] = {
	{.help = "Text"},
	{.group = text_rows, .field = FIELD(text)},
	{.group = saving_rows, .only = "best_by", .field = FIELD(training.saving)},
	{.group = initial_rows, .only = "vocab_file", .field = FIELD(initial)},
	{.group = vocabulary_rows, .field = FIELD(text)},

	{.help = "Model"},
	{.group = initial_rows, .only = "model", .field = FIELD(initial)},
	{.group = model_size_rows, .only = "form", .field = FIELD(sizes)},
	{.group = model_size_rows, .except = "form", .field = FIELD(sizes), .rare = true},
	{.group = initial_rows, .except = "vocab_file model", .field = FIELD(initial)},
	{.group = training_rows, .only = "hidden_dropout_prob attention_probs_dropout_prob", .field = FIELD(training)},

	{.help = "Run"},
	{.group = folder_rows, .field = FIELD(training.folder)},
	{.group = training_rows, .only = "recipe", .field = FIELD(training)},
	{.group = length_rows, .field = FIELD(training.length)},
	{ROW(time, ROLE_RESULT, "TIME"), .section = "phase", .alias = "total_training_time", .fallback_text = "not used",
	 .help = "train the best model that this much time (3h, 45m, ...) allows: with --recipe fast unless another is named, "
	 "and with a model, batch, and length chosen by the speed of this machine unless they are given; the schedule ends when "
	 "the time does; interruptions do not count"},
	{.group = batch_rows, .field = FIELD(training.batch)},
	{.group = saving_rows, .except = "best_by", .field = FIELD(training.saving)},
	{ROW(eval_instances, ROLE_RUN, "N"), .rare = true, .section = "phase", .range = "0..", .fallback = "1000",
	 .help = "number of held-out instances to score, always the same ones; 0 = all; with eval_file the default is all"},
	{.group = stopping_rows, .field = FIELD(training.stopping)},
	{.group = training_rows, .only = "seed", .field = FIELD(training)},

	{.help = "Ranks"},
	{.group = ranks_rows, .field = FIELD(training.ranks)},

	{.help = "Phases"},
	{ROW(end_with_pairs, ROLE_RESULT, NULL), .rare = true, .fallback = "false",
	 .help = "make the second half of the run a phase of its own, with --next_sentence overlap and --running_text_share 0.4, "
	 "in which the model also learns to compare two texts"},
	{.group = second_phase_rows, .field = FIELD(second)},

	{.help = "Numbers"},
	{.group = safeguard_rows, .field = FIELD(training.numbers)},

	{.help = "Instances"},
	{.group = training_rows, .only = "max_seq_length", .field = FIELD(training)},
	{.reworded = true, .name = "max_seq_length", .fallback = "128"},
	{.group = instance_rows, .field = FIELD(instances)},
	{ROW(shuffle, ROLE_RESULT, NULL), .rare = true, .fallback = "true", .help = "shuffle the instances of each epoch"},

	{.help = "Optimizer"},
	{.group = optimizer_rows, .only = "optimizer", .field = FIELD(training.optimizer)},
	{.group = rate_rows, .except = "average_weights", .field = FIELD(training.rate)},
	{.group = optimizer_rows, .except = "optimizer", .field = FIELD(training.optimizer)},
	{.group = rate_rows, .only = "average_weights", .field = FIELD(training.rate)},

	{.help = "Device"},
	{.group = device_rows, .field = FIELD(training.device)},
	{.name = NULL},
};
/* clang-format on */

const struct command_text pretrain_text = {
	.name = "pretrain",
	.synopsis = "--corpus PATH... --out FOLDER [options]",
	.summary = "train a BERT on text",
	.description = "Learns a vocabulary unless one is given, tokenizes the text, trains on masked words (and on next "
		       "sentences, as the recipe says), evaluates on held-out documents, saves checkpoints, and writes "
		       "FOLDER/final, a Hugging Face model folder. Everything but --corpus and --out has a default; --time 3h "
		       "makes the best model that three hours allow. The settings table at the start shows what was given and "
		       "what bertc chose, and -v shows the defaults as well.\n\n"
		       "To resume an interrupted run, run the same command again: it continues from the newest checkpoint. "
		       "Ctrl-C finishes the current step, saves, and exits with status 75.\n\n"
		       "A run may have several phases, such as 128 tokens and then 512. List them in a config file as [phase] "
		       "sections (in JSON, \"phases\": [{...}, {...}]), each with its own values for the options marked `per "
		       "phase` below. On the command line, --phase2.learning_rate applies to the second phase and "
		       "--learning_rate to all. Weights, moments, and the counts of steps and tokens carry over from phase to "
		       "phase; schedule and bias correction start over. Config files of published runs (bert_base, bert_large, "
		       "scibert, nvidia_lamb) are installed in share/bertc/recipes; in the source tree they are in recipes/.\n\n"
		       "Flags of google-research/bert, NVIDIA's BERT, transformers, and Megatron-LM are accepted under their own "
		       "names, or an error says what to use instead.",
	.common = "corpus data model init_checkpoint vocab_file vocab_size cased out time num_train_steps "
		  "train_batch_size max_seq_length learning_rate eval_corpus recipe seed max_time n_gpus plan fresh",
	.examples = "bertc pretrain --corpus 'text/*.txt.zst' --time 3h --out runs/mine\ttrain the best model that three hours "
		    "allow\n"
		    "bertc pretrain --config recipes/scibert.conf --corpus papers/ --out runs/sci\trepeat a published run of two "
		    "phases\n"
		    "bertc pretrain --corpus text/ --model base --out runs/base --plan\tshow settings and memory without "
		    "training\n"
		    "bertc pretrain --out runs/mine\tresume an interrupted run",
};
