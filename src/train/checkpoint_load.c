/* Weights and moments of a checkpoint, into a model and optimiser of any back end and precision. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "formats/safetensors.h"
#include "train/checkpoint_internal.h"
#include "train/model_folder.h"

int checkpoint_slabs(const struct model *model, const struct optimizer *optimizer,
		     struct slab_source out[SLAB_SOURCES])
{
	out[0] = (struct slab_source){"exp_avg", &optimizer->m};
	out[1] = (struct slab_source){"exp_avg_sq", &optimizer->v};
	out[2] = (struct slab_source){"master", &model->slab};
	return model->slab.dtype == DTYPE_F32 ? 2 : 3;
}

/* One "<kind>.<parameter>" set of a file into a device slab of any float type. */
static enum status slab_read(const char *path, const struct safetensors *file, const char *kind,
			     const struct model *model, const struct tensor *slab)
{
	struct backend *be = model->backend;
	bool wide = slab->dtype == DTYPE_F64;
	void *host;
	TRY(memory_new(&host, model->slab_count, dtype_bytes(slab->dtype), "copy of the moments"));
	enum status status = OK;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		char name[128];
		snprintf(name, sizeof(name), "%s.%s", kind, parameter->name);
		const struct safetensors_entry *entry = safetensors_find(file, name);
		if (!entry || entry->count != parameter->count) {
			status = error_set(ERR_STATE, "'%s': '%s' is %s", path, name,
					   entry ? "of another size" : "missing");
			goto done;
		}
		if (wide)
			TRY_GOTO(safetensors_to_double(entry, path, (double *)host + parameter->offset), done);
		else
			TRY_GOTO(safetensors_to_float(entry, path, (float *)host + parameter->offset), done);
	}
	be->functions->to_device(be, slab->data, host, (size_t)model->slab_count * dtype_bytes(slab->dtype));
done:
	free(host);
	return status;
}

enum status checkpoint_load(const char *path, struct model *model, struct replica *replica,
			    struct optimizer *optimizer)
{
	char file_path[PATH_BYTES], state_path[PATH_BYTES];
	float *slab = NULL;
	struct safetensors file = {0};
	struct json_document document = {0};
	struct slab_source sources[SLAB_SOURCES];
	int source_count = checkpoint_slabs(model, optimizer, sources);
	enum status status;
	TRY_GOTO(memory_new(&slab, model->slab_count, sizeof(*slab), "copy of the weights"), done);
	TRY_GOTO(model_folder_load(path, model, MISSING_NOTHING, slab, NULL), done);
	TRY_GOTO(model_set_weights(model, replica, slab), done);
	TRY_GOTO(path_join(file_path, path, OPTIMIZER_NAME), done);
	TRY_GOTO(safetensors_open(&file, file_path), done);
	for (int i = 0; i < source_count; i++) {
		bool optional = sources[i].slab == &model->slab;
		char first[128];
		snprintf(first, sizeof(first), "%s.%s", sources[i].kind, model->parameters[0].name);
		if (optional && !safetensors_find(&file, first))
			continue;
		TRY_GOTO(slab_read(file_path, &file, sources[i].kind, model, sources[i].slab), done);
	}
	model_refresh(model, replica);
	TRY_GOTO(path_join(state_path, path, STATE_NAME), done);
	TRY_GOTO(json_read(&document, state_path, CHECKPOINT_JSON_LIMIT), done);
	TRY_GOTO(json_get_integer(document.root, state_path, "update_count", 0, INT64_MAX, &optimizer->update_count),
		 done);
done:
	free(slab);
	safetensors_close(&file);
	json_release(&document);
	return status;
}
