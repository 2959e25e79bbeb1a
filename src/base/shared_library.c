#include "base/shared_library.h"

#include <dlfcn.h>
#include <string.h>

enum status shared_library_open(void **out_handle, const struct shared_library *library,
				const struct shared_library_function *functions, size_t count)
{
	void *handle = *out_handle = NULL;
	handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		enum status status = error_set(ERR_RESOURCE, "%s is not installed on this machine: %s", library->name, dlerror());
		error_hint("install %s, add the folder of %s to LD_LIBRARY_PATH, or give %s", library->package, library->file,
			   library->instead);
		return status;
	}
	for (size_t i = 0; i < count; i++) {
		void *function = dlsym(handle, functions[i].name);
		if (!function) {
			enum status status = error_set(ERR_RESOURCE, "%s on this machine is too old: it has no %s", library->name,
						       functions[i].name);
			error_hint("install a newer version of %s, or give %s", library->package, library->instead);
			dlclose(handle);
			return status;
		}
		memcpy(functions[i].to, &function, sizeof(function)); /* C has no cast for it */
	}
	*out_handle = handle;
	return OK;
}

void shared_library_close(void *handle)
{
	if (handle)
		dlclose(handle);
}
