/* Opening a back end by name. */
#include "backend/backend.h"

#include <stdlib.h>
#include <string.h>
#include "backend/cpu/cpu.h"
#include "backend/ref/ref.h"
#include "base/memory.h"

const char *const dtype_names[DTYPE_COUNT] = {"f64", "f32", "bf16", "f16"};

enum status backend_open(struct backend **out, const struct backend_settings *settings)
{
	*out = NULL;
	enum status (*open)(struct backend *, const struct backend_settings *) = NULL;
	if (strcmp(settings->device, "ref") == 0)
		open = ref_backend_open;
	else if (strcmp(settings->device, "cpu") == 0)
		open = cpu_backend_open;
	if (open == NULL) {
		enum status status = error_set(ERR_USAGE, "'%s': no such device in this build", settings->device);
		error_hint("give --device cpu or --device ref");
		return status;
	}
	struct backend *be;
	TRY(memory_new(&be, 1, sizeof(*be), "the back end"));
	enum status status = open(be, settings);
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

enum dtype backend_best_dtype(const char *device)
{
	return strcmp(device, "ref") == 0 ? DTYPE_F64 : cpu_best_dtype();
}
