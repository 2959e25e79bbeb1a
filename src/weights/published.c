/* The table of published models, for hints where to get one. */
#include "weights/published.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/missing_path.h"
#include "base/path.h"
#include "base/text.h"

/* The models that the Hub has under a name without an owner. */
static bool has_no_owner(const char *name)
{
	static const char *const stems[] = {"bert-", "distilbert-", "roberta-", "xlm-roberta-", "camembert-"};
	for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
		if (strncmp(name, stems[i], strlen(stems[i])) == 0)
			return true;
	return false;
}

/* OWNER/NAME, or NAME alone, such as all-MiniLM-L6-v2 or roberta-base. If there is a folder OWNER, a path in it is meant; and a
 * name that ends like a file's is not a model's. */
static bool looks_like_hub_name(const char *path)
{
	static const char *const suffixes[] = {".json", ".txt", ".bin", ".pt", ".safetensors", ".ckpt", ".index"};
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t owner = strspn(path, letters);
	const char *name = path[owner] == '/' ? path + owner + 1 : path;
	char folder[128];
	if (name[0] == '\0' || name[strspn(name, letters)] != '\0' || path[0] == '.' || owner == 0 || owner >= sizeof folder)
		return false;
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (text_ends_with(name, suffixes[i]))
			return false;
	if (name == path) /* a mistyped name of a file is more likely, as bert-base is, unless it is made of several words */
		return strchr(name, '-') != strrchr(name, '-') || (has_no_owner(name) && strncmp(name, "bert-", 5) != 0);
	snprintf(folder, sizeof folder, "%.*s", (int)owner, path);
	return !file_exists(folder);
}

void published_hint(const char *path, const char *advice)
{
	static const char hub[] = "https://huggingface.co/";
	if (strncmp(path, hub, strlen(hub)) == 0) /* the address of a model's page */
		path += strlen(hub);
	if (looks_like_hub_name(path))
		error_hint("%s%sif this is a model on the Hugging Face Hub, hf:%s%s downloads it", advice, advice[0] ? "; " : "",
			   strchr(path, '/') || has_no_owner(path) ? "" : "OWNER/", path);
	else {
		error_hint("%s", advice);
		hint_at_missing(path);
	}
}
