/* The option rows for a model's sizes. */
#include "model/model_size_options.h"

#define ROW(member, role, value) OPTION_ROW(struct model_sizes, member, role, value)

/* clang-format off */
const struct option model_size_rows[] = {
	{ROW(form, ROLE_RESULT, "TYPE"), .fallback_text = "bert, or the model's",
	 .help = "form of a new model of a named size: the model_type of its config.json, such as bert, roberta, or modernbert"},
	{ROW(num_hidden_layers, ROLE_RESULT, "N"), .range = "1..1024", .alias = "num_layers n_layers",
	 .fallback_text = "the model's",
	 .help = "number of layers, instead of the model's"},
	{ROW(hidden_size, ROLE_RESULT, "N"), .range = "1..65536", .alias = "n_embd d_model", .fallback_text = "the model's",
	 .help = "width of the model"},
	{ROW(num_attention_heads, ROLE_RESULT, "N"), .range = "1..65535", .alias = "num_heads",
	 .fallback_text = "the model's; with hidden_size a head for every 64 columns",
	 .help = "number of attention heads"},
	{ROW(intermediate_size, ROLE_RESULT, "N"), .range = "1..262144", .alias = "ffn_hidden_size",
	 .fallback_text = "the model's; with hidden_size four times that",
	 .help = "width of the feed-forward layers"},
	{ROW(max_position_embeddings, ROLE_RESULT, "N"), .range = "8..524288", .fallback_text = "the model's",
	 .help = "number of positions, the longest sequence that the model can take"},
	{0},
};
