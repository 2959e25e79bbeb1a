/* Adds files to the list that becomes a manifest. */
#include "weights/folder_file.h"

#include <stdio.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"

enum status folder_files_add(struct folder_files *list, const char *name, int64_t bytes, uint32_t crc)
{
	TRY(memory_grow(&list->files, &list->capacity, list->count + 1, sizeof *list->files, "list of files"));
	struct folder_file *file = &list->files[list->count++];
	*file = (struct folder_file){.bytes = bytes, .crc32c = crc};
	int length = snprintf(file->name, sizeof file->name, "%s", name);
	BUG_IF(length >= (int)sizeof file->name);
	return OK;
}

enum status folder_files_measure(struct folder_files *list, const char *folder, const char *name)
{
	char path[PATH_BYTES];
	TRY(path_join(path, folder, name));
	struct file_map map;
	TRY(file_map_open(&map, path));
	enum status status = folder_files_add(list, name, (int64_t)map.size, crc32c(0, map.data, map.size));
	file_map_close(&map);
	return status;
}
