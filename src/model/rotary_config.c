/* Reads and writes the bases of rotary positions. */
#include "model/rotary_config.h"

#include <string.h>

enum status rotary_base_read(const struct json *object, const char *name, const char *old_key, const char *kind, double *base)
{
	const struct json *old = json_member(object, old_key), *both = json_member(object, "rope_parameters");
	const struct json *parameters = both && both->kind == JSON_OBJECT && kind ? json_member(both, kind) : both;
	const char *type = "default";
	double before;
	if (old && old->kind != JSON_NULL)
		TRY(json_get_number(object, name, old_key, base));
	before = *base;
	if (parameters && parameters->kind == JSON_OBJECT) {
		TRY(json_get_string(parameters, name, "rope_type", &type));
		TRY(json_get_number(parameters, name, "rope_theta", base));
	}
	if (strcmp(type, "default") != 0)
		return error_set(ERR_USAGE, "'%s': \"rope_type\" is \"%.40s\"; bertc has \"default\"", name, type);
	if (old && old->kind != JSON_NULL && before != *base)
		return error_set(ERR_DATA, "'%s': \"%s\" and \"rope_parameters\" say different things", name, old_key);
	if (!(*base > 1 && *base < 1e12))
		return error_set(ERR_DATA, "'%s': \"%s\": the base of rotary positions is %g", name, old_key, *base);
	return OK;
}

void rotary_base_write(struct json_writer *writer, const char *key, double base)
{
	json_open(writer, key, '{');
	json_put_double(writer, "rope_theta", base);
	json_put_string(writer, "rope_type", "default");
	json_close(writer);
}

enum status rotary_check(const struct model_config *config, const char *name)
{
	int32_t columns = config->hidden_size / config->num_attention_heads;
	if (columns % 2 == 0 && columns <= ROTARY_LIMIT)
		return OK;
	return error_set(ERR_DATA, "'%s': heads of %d columns cannot be turned", name, columns);
}
