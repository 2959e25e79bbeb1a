/* The Hub's list of a model's files: each file that is taken has the size and hash that the list gives, and nothing is written
 * outside the cache. Fetching is replaced by a function that writes the input for the list, and a few bytes for a file. */
#include "base/file.h"
#include "base/file_operations.h"
#include "base/path.h"
#include "formats/fetch.h"

#include "formats/hub.h"
#include "fuzz.h"

#define COMMIT "0123456789012345678901234567890123456789"
#define LIST(siblings) "{\"sha\": \"" COMMIT "\", \"siblings\": [" siblings "]}"
#define FILE_(name, size) "{\"rfilename\": \"" name "\", \"size\": " size ", \"blobId\": \"" COMMIT "\"}"

FUZZ_SEEDS(
	FUZZ_SEED(LIST(FILE_("config.json", "4") ", " FILE_("model.safetensors", "4"))),
	FUZZ_SEED(LIST(FILE_("config.json", "4") ", " FILE_("1_Pooling/config.json", "4") ", " FILE_("pytorch_model.bin", "4"))),
	FUZZ_SEED(LIST(FILE_("../config.json", "4") ", " FILE_("/a/config.json", "4") ", " FILE_("a/../../vocab.txt", "4"))),
	FUZZ_SEED(LIST(FILE_("config.json",
			     "4") ", {\"rfilename\": \"model.safetensors\", \"size\": 4, \"lfs\": {\"sha256\": \"" COMMIT COMMIT
				  "\"}}")))

static const uint8_t *list;
static size_t list_size;

static int sync_nothing(int descriptor)
{
	(void)descriptor;
	return 0;
}

enum status fetch(const struct fetch_settings *settings, const struct fetch_request *request, struct fetch_result *result)
{
	(void)settings;
	bool is_list = !request->checksum;
	BUG_IF(strlen(request->path) >= PATH_BYTES);
	*result = (struct fetch_result){.outcome = FETCH_DONE, .bytes = is_list ? (int64_t)list_size : 4};
	return file_write(request->path, is_list ? (const char *)list : "four", (size_t)result->bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct fetch_settings settings;
	static char inside[300];
	char found[PATH_BYTES], config[PATH_BYTES];
	struct name_list names = {0};
	list = bytes;
	list_size = count;
	if (!inside[0]) {
		(void)fuzz_file("other", bytes, 0); /* makes the folder */
		snprintf(inside, sizeof inside, "%s/cache", fuzz_folder);
		file_operations.fsync = sync_nothing;
		BUG_IF(setenv("HF_HUB_CACHE", inside, 1) || unsetenv("HF_HUB_OFFLINE") || setenv("HF_ENDPOINT", "http://hub", 1));
	}
	enum status status = hub_fetch("a/b", false, &settings, found);
	if (status == OK)
		BUG_IF(path_join(config, found, "config.json") != OK || !file_exists(config));
	BUG_IF(status != OK && strlen(error_last()->message) == 0);
	BUG_IF(folder_list(fuzz_folder, &names) != OK || names.count > 2);
	name_list_release(&names);
	BUG_IF(file_is_folder(inside) && folder_remove(inside) != OK);
	return 0;
}
