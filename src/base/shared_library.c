/* Finds a library where the loader or the program's own folder has it, and resolves its functions. */
#include "base/shared_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Tries the library's files in `folder` or, if that is NULL, where the loader looks. The loader's message about the first one is
 * kept: the later ones are other versions. */
static void *load(const struct shared_library *library, const char *folder, char *reason, size_t size)
{
	int flags = RTLD_NOW | (library->global ? RTLD_GLOBAL : RTLD_LOCAL);
	void *handle = NULL;
	for (int i = 0; !handle && i < SHARED_LIBRARY_FILES && (i == 0 || library->files[i]); i++) {
		char path[256];
		const char *file = library->files[i];
		if (folder && (!file || strchr(file, '/')))
			continue;
		if (folder)
			snprintf(path, sizeof path, "%s/%s", folder, file);
		handle = dlopen(folder ? path : file, flags);
		const char *said = handle ? NULL : dlerror();
		if (said && !reason[0])
			snprintf(reason, size, "%s", said);
	}
	return handle;
}

enum status shared_library_open(void **out_handle, const struct shared_library *library,
				const struct shared_library_function *functions, size_t count)
{
	char reason[512] = "";
	void *handle = load(library, NULL, reason, sizeof reason);
	if (!handle && library->folder)
		handle = load(library, library->folder, reason, sizeof reason);
	*out_handle = handle;
	if (!handle)
		return error_hinted(error_set(ERR_RESOURCE, "%s is not installed on this machine: %s", library->name, reason),
				    "install %s, add the folder of %s to LD_LIBRARY_PATH, or %s", library->package,
				    library->files[0], library->instead);
	for (size_t i = 0; i < count; i++) {
		void *function = dlsym(handle, functions[i].name);
		if (!function) {
			enum status status = error_set(ERR_RESOURCE, "%s on this machine is too old: it has no %s", library->name,
						       functions[i].name);
			error_hint("install a newer version of %s, or %s", library->package, library->instead);
			dlclose(handle);
			*out_handle = NULL;
			return status;
		}
		memcpy(functions[i].to, &function, sizeof function); /* ISO C has no cast from an object to a function pointer */
	}
	return OK;
}
