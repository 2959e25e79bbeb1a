/* The fields of config.json that only ModernBERT has. */
#ifndef MODEL_MODERNBERT_CONFIG_H
#define MODEL_MODERNBERT_CONFIG_H

#include "base/json.h"
#include "model/model.h"

extern const char modernbert_members[];
/* Reads them in the form of transformers 4 (global_attn_every_n_layers, global_rope_theta, local_rope_theta) or 5 (layer_types,
 * rope_parameters). ERR_DATA if both are there and differ; ERR_USAGE for what bertc does not compute. */
MUST_USE enum status modernbert_config_read(struct model_config *config, const struct json *object, const char *name);
/* Writes both forms. */
void modernbert_config_write(const struct model_config *config, struct json_writer *writer);

#endif
