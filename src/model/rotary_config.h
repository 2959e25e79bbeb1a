/* What config.json says of rotary positions. */
#ifndef MODEL_ROTARY_CONFIG_H
#define MODEL_ROTARY_CONFIG_H

#include "base/json.h"
#include "model/model.h"

/* Reads a base, in transformers 4's or other older form (`old_key`) or in transformers 5's: "rope_parameters", or with `kind` its
 * member for a kind of layers. ERR_DATA if both are there and differ; ERR_USAGE for other positions than the usual ones. */
MUST_USE enum status rotary_base_read(const struct json *object, const char *name, const char *old_key, const char *kind,
				      double *base);
/* Writes it as transformers 5 does. */
void rotary_base_write(struct json_writer *writer, const char *key, double base);
/* ERR_DATA for heads that cannot be turned. */
MUST_USE enum status rotary_check(const struct model_config *config, const char *name);

#endif
