/* Rows of the options of adapters. */
#include "run/adapter_options.h"

#define ROW(member, role, value) OPTION_ROW(struct adapter_options, member, role, value)

/* clang-format off */
const struct option adapter_rows[] = {
	{ROW(adapter, ROLE_RESULT, "KIND"), .range = "none|lora", .fallback = "none",
	 .help = "lora: train small matrices that are added to layers of the encoder, and the head, and write only these, as "
	 "peft does; the model itself stays as it is"},
	{ROW(lora_rank, ROLE_RESULT, "R"), .alias = "lora_r", .range = "1..1024", .fallback = "8",
	 .help = "rows of A and columns of B, whose product is added to a layer's matrix"},
	{ROW(lora_alpha, ROLE_RESULT, "X"), .range = "0.001..100000", .fallback = "16",
	 .help = "the product is multiplied by lora_alpha / lora_rank"},
	{ROW(lora_targets, ROLE_RESULT, "NAME,NAME..."), .alias = "lora_target_modules", .fallback_text = "query and value",
	 .help = "which layers, by the last parts of their names in transformers: query,value,output.dense or all-linear"},
	{ROW(use_rslora, ROLE_RESULT, NULL), .fallback = "false", .rare = true,
	 .help = "multiply by lora_alpha / sqrt(lora_rank) instead (rsLoRA)"},
	{0},
};
/* clang-format on */
