/* Archives that `bertc download` unpacks: everything that is left lies below the folder, and nothing is left of damaged
 * archives. */
#include <archive.h>
#include <archive_entry.h>
#include "base/file.h"
#include "formats/unpack.h"
#include "fuzz.h"

/* An archive of a folder, a file in that folder, and one more entry. */
static void add(char **arguments, bool zip, const char *name, mode_t type)
{
	static char bytes[1 << 15];
	size_t used = 0;
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	if (zip)
		archive_write_set_format_zip(archive);
	else
		archive_write_set_format_ustar(archive);
	if (zip)
		archive_write_zip_set_compression_store(archive);
	else
		archive_write_add_filter_gzip(archive);
	archive_write_set_bytes_in_last_block(archive, 1);
	BUG_IF(archive_write_open_memory(archive, bytes, sizeof bytes, &used) != ARCHIVE_OK);
	const char *names[] = {"d/", "d/file", name};
	mode_t types[] = {AE_IFDIR, AE_IFREG, type};
	for (int i = 0; i < 3; i++) {
		archive_entry_clear(entry);
		archive_entry_set_pathname(entry, names[i]);
		archive_entry_set_filetype(entry, types[i]);
		archive_entry_set_perm(entry, 0644);
		if (types[i] == AE_IFLNK)
			archive_entry_set_symlink(entry, "/etc");
		archive_entry_set_size(entry, types[i] == AE_IFREG ? 4 : 0);
		BUG_IF(archive_write_header(archive, entry) != ARCHIVE_OK);
		if (types[i] == AE_IFREG)
			BUG_IF(archive_write_data(archive, "text", 4) != 4);
	}
	BUG_IF(archive_write_close(archive) != ARCHIVE_OK);
	archive_write_free(archive);
	archive_entry_free(entry);
	fuzz_add_seed(arguments, bytes, used);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	for (int zip = 0; zip < 2; zip++) {
		add(*argv, zip, "other", AE_IFREG);
		add(*argv, zip, "../out", AE_IFREG);
		add(*argv, zip, "link", AE_IFLNK);
	}
	return 0;
}

static int sync_nothing(int descriptor)
{
	(void)descriptor;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct unpack_limits limits = {.bytes = 1 << 20, .files = 100, .ratio = 1000};
	static char inner[300];
	const char *path = fuzz_file("archive", bytes, count);
	if (!inner[0]) {
		snprintf(inner, sizeof inner, "%s/inner", fuzz_folder);
		file_operations.fsync = sync_nothing;
	}
	enum status status = unpack(path, inner, &limits);
	BUG_IF(status == ERR_USAGE && strlen(error_last()->message) == 0);
	struct name_list names = {0};
	BUG_IF(folder_list(fuzz_folder, &names) != OK || names.count != 1 + (status == OK));
	name_list_release(&names);
	BUG_IF(status == OK && folder_remove(inner) != OK);
	return 0;
}
