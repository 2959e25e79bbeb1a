/* The fields of config.json that only NomicBERT has. */
#ifndef MODEL_NOMIC_CONFIG_H
#define MODEL_NOMIC_CONFIG_H

#include "base/json.h"
#include "model/model.h"

extern const char nomic_members[];
/* Reads them as transformers 5 writes them, or as published models have them, in words of GPT-2's configuration ("n_embd").
 * ERR_USAGE for what bertc does not compute. */
MUST_USE enum status nomic_config_read(struct model_config *config, const struct json *object, const char *name);
/* Writes transformers 5's. */
void nomic_config_write(const struct model_config *config, struct json_writer *writer);

#endif
