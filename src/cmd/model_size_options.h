/* The options that change individual sizes of --model, shared by the commands that create a model. */
#ifndef CMD_MODEL_SIZE_OPTIONS_H
#define CMD_MODEL_SIZE_OPTIONS_H

#include "base/option.h"
#include "model/model.h"

#define MODEL_SIZE_OPTION(settings, member, option_role, size, limit, names, otherwise, what)                                    \
	{                                                                                                                        \
		.name = #size, .type = OPTION_INTEGER, .field = offsetof(settings, member.size), .range = limit,                 \
		.role = option_role, .value_name = "N", .alias = names, .fallback_text = otherwise, .help = what                 \
	}
/* Rows of an option table for a settings struct whose member `member` is a struct model_sizes. */
#define MODEL_SIZE_OPTIONS(settings, member, option_role)                                                                        \
	MODEL_SIZE_OPTION(settings, member, option_role, num_hidden_layers, "1..1024", "num_layers n_layers", "the model's",     \
			  "number of layers, instead of the model's"),                                                           \
		MODEL_SIZE_OPTION(settings, member, option_role, hidden_size, "1..65536", "n_embd d_model", "the model's",       \
				  "width of the model"),                                                                         \
		MODEL_SIZE_OPTION(settings, member, option_role, num_attention_heads, "1..65535", "num_heads",                   \
				  "the model's; with hidden_size a head for every 64 columns", "number of attention heads"),     \
		MODEL_SIZE_OPTION(settings, member, option_role, intermediate_size, "1..262144", "ffn_hidden_size",              \
				  "the model's; with hidden_size four times that", "width of the feed-forward layers"),          \
		MODEL_SIZE_OPTION(settings, member, option_role, max_position_embeddings, "8..524288", NULL, "the model's",      \
				  "number of positions, the longest sequence that the model can take")

#endif
