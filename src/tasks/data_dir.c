/* Searches a folder for the files of a task. */
#include "tasks/data_dir.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

/* For tasks without published file names. */
static const char *const stems_of_train[] = {"train", NULL};
static const char *const stems_of_dev[] = {"dev", "valid", "validation", "val", "devel", NULL};
static const char *const stems_of_test[] = {"test", NULL};
static const char *const endings[] = {".tsv", ".csv", ".jsonl", ".json", ".txt", ".conll", NULL};

/* The first of the names that exists in the folder, with or without ".gz" and the like: its path in out (char[PATH_BYTES]). */
static enum status find_named(const char *folder, const char *const *names, char *out, bool *out_found)
{
	static const char *const packings[] = {"", ".gz", ".bz2", ".zst", ".xz"};
	*out_found = false;
	for (int i = 0; i < LAYOUT_NAMES && names[i]; i++) {
		for (size_t j = 0; j < sizeof packings / sizeof *packings; j++) {
			char name[256];
			snprintf(name, sizeof name, "%s%s", names[i], packings[j]);
			TRY(path_join(out, folder, name));
			if (file_exists(out)) {
				*out_found = true;
				return OK;
			}
		}
	}
	return OK;
}

/* [name=]path of the first of the names that exists; NULL: none does. */
static enum status find_file(struct data_dir *out, const char *folder, const char *name, const char *const *names,
			     const char **found)
{
	char path[PATH_BYTES], named[PATH_BYTES + 64];
	bool is_there;
	*found = NULL;
	TRY(find_named(folder, names, path, &is_there));
	if (!is_there)
		return OK;
	snprintf(named, sizeof named, "%s%s%s", name, *name ? "=" : "", path);
	return string_store_copy(&out->strings, named, strlen(named), found);
}

static enum status find_stems(struct data_dir *out, const char *folder, const char *const *stems, const char **found)
{
	for (*found = NULL; *stems && !*found; stems++)
		for (int i = 0; endings[i] && !*found; i++) {
			char name[64];
			const char *const names[LAYOUT_NAMES] = {name, NULL};
			snprintf(name, sizeof name, "%s%s", *stems, endings[i]);
			TRY(find_file(out, folder, "", names, found));
		}
	return OK;
}

/* Finds the existing sets of a published task. */
static enum status find_sets(struct data_dir *out, const char *folder, const struct layout_set *sets, const char **found)
{
	int count = 0;
	for (int i = 0; i < DATA_SETS && sets[i].name; i++) {
		TRY(find_file(out, folder, sets[i].name, sets[i].files, &found[count]));
		count += found[count] != NULL;
	}
	return OK;
}

static enum status nothing_there(const struct layout *layout, const char *folder)
{
	char names[256] = "train.tsv, dev.tsv, test.tsv and the like";
	if (layout)
		snprintf(names, sizeof names, "%s, %s", layout->train[0], layout->dev[0].files[0]);
	return error_hinted(
		error_set(ERR_USAGE, "--data_dir %s: %s", folder,
			  file_is_folder(folder) ? "there are no files of the task in the folder" : "there is no such folder"),
		"looked for %s", names);
}

enum status data_dir_find(struct data_dir *out, const struct task *task, const struct layout *layout, const void *own,
			  const char *folder)
{
	if (layout) {
		TRY(find_file(out, folder, "", layout->train, &out->train));
		TRY(find_sets(out, folder, layout->dev, out->dev));
		TRY(find_sets(out, folder, layout->test, out->test));
	} else if (task->data_names) {
		const struct data_names *names = task->data_names(own);
		TRY(find_file(out, folder, "", names->train, &out->train));
		TRY(find_file(out, folder, "", names->dev, &out->dev[0]));
		TRY(find_file(out, folder, "", names->test, &out->test[0]));
	} else {
		TRY(find_stems(out, folder, stems_of_train, &out->train));
		TRY(find_stems(out, folder, stems_of_dev, &out->dev[0]));
		TRY(find_stems(out, folder, stems_of_test, &out->test[0]));
	}
	return out->train || out->dev[0] || out->test[0] ? OK : nothing_there(layout, folder);
}

void data_dir_release(struct data_dir *folder)
{
	string_store_release(&folder->strings);
	*folder = (struct data_dir){.train = NULL};
}
