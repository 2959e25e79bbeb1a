/* The table of back ends, by which they are opened and chosen. */
#include "backend/open.h"

#include <stdlib.h>
#include <string.h>
#include "backend/cpu/cpu.h"
#include "backend/cuda/cuda.h"
#include "backend/ref/ref.h"
#include "base/memory.h"

const char *const dtype_names[DTYPE_COUNT] = {"fp64", "fp32", "bf16", "fp16", "e4m3", "e5m2", "int8"};

static enum dtype ref_best_dtype(void)
{
	return DTYPE_F64;
}

static const struct device {
	const char *name;
	enum status (*open)(struct backend *be, const struct backend_settings *settings);
	enum dtype (*best_dtype)(void);
	nearest_search *nearest; /* NULL: none */
} devices[] = {
	{"cpu", cpu_backend_open, cpu_best_dtype, cpu_nearest},
	{"cuda", cuda_backend_open, cuda_best_dtype, NULL},
	{"ref", ref_backend_open, ref_best_dtype, NULL},
};

static const struct device *find_device(const char *name)
{
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
		if (strcmp(devices[i].name, name) == 0)
			return &devices[i];
	return NULL;
}

enum status backend_open(struct backend **out, const struct backend_settings *settings)
{
	*out = NULL;
	const struct device *device = find_device(settings->device);
	if (device == NULL)
		return error_hinted(error_set(ERR_USAGE, "'%s': no such device in this build", settings->device),
				    "give --device cpu, cuda or ref");
	if (settings->tf32 && strcmp(settings->device, "cuda") != 0)
		return error_hinted(error_set(ERR_USAGE, "'%s' has no TF32", settings->device),
				    "use --precision fp32, or --device cuda");
	if (settings->fp8 && settings->inference && strcmp(settings->device, "cuda") != 0)
		return error_hinted(error_set(ERR_USAGE, "'%s' has no FP8: it is simulated for training only", settings->device),
				    "give --precision bf16 or int8, or --device cuda");
	if (settings->int8 && !settings->inference)
		return error_hinted(
			error_set(ERR_USAGE, "int8 is for inference: a model cannot be trained in it"),
			"train with --precision bf16 or fp32, and give --precision int8 to the commands that use the model");
	if (settings->int8 && strcmp(settings->device, "cuda") == 0)
		return error_hinted(error_set(ERR_USAGE, "int8 runs on CPUs only"),
				    "give --device cpu, or --precision fp8 on a GPU that has it");
	struct backend *be;
	TRY(memory_new(&be, 1, sizeof *be, "the back end"));
	enum status status = device->open(be, settings);
	if (status != OK) {
		free(be);
		return status;
	}
	*out = be;
	return OK;
}

void backend_close(struct backend *be)
{
	if (be == NULL)
		return;
	be->functions->close(be);
	free(be);
}

struct batch_capacity backend_room(const struct backend *be, struct batch_capacity capacity)
{
	return be->functions->room ? be->functions->room(capacity) : capacity;
}

nearest_search *backend_nearest(const struct backend *be)
{
	return be->inference ? find_device(be->name)->nearest : NULL;
}

enum dtype backend_best_dtype(const char *name)
{
	const struct device *device = find_device(name);
	return device != NULL ? device->best_dtype() : DTYPE_F32;
}

void backend_libraries(struct library_list *list)
{
	cuda_libraries(list);
}

bool backend_has_cuda(void)
{
	return cuda_is_built();
}

int backend_count_gpus(void)
{
	int count = cuda_count_gpus();
	return count < GPUS_LIMIT ? count : GPUS_LIMIT;
}

const char *backend_best_device(void)
{
	return cuda_count_gpus() > 0 ? "cuda" : "cpu";
}

enum status backend_describe_cpu(struct cpu_description *out)
{
	return cpu_describe(out);
}
