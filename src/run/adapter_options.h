/* Training an adapter in place of the whole model (model/low_rank.h). */
#ifndef RUN_ADAPTER_OPTIONS_H
#define RUN_ADAPTER_OPTIONS_H

#include "base/option.h"

struct adapter_options {
	enum adapter_kind { ADAPTER_NONE, ADAPTER_LORA } adapter;
	int64_t lora_rank;
	double lora_alpha;
	const char *lora_targets; /* names of layers; NULL: query and value */
	bool use_rslora;
};
extern const struct option adapter_rows[];

#endif
