#include "weights/published.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "base/text.h"

/* Google's BERTs, by their names on the Hub. */
static const struct {
	const char *name, *source;
} published[] = {
	{"bert-base-uncased", "google/uncased_L-12_H-768_A-12"},
	{"bert-large-uncased", "google/uncased_L-24_H-1024_A-16"},
	{"bert-base-cased", "google/cased_L-12_H-768_A-12"},
	{"bert-large-cased", "google/cased_L-24_H-1024_A-16"},
	{"bert-base-multilingual-cased", "google/multi_cased_L-12_H-768_A-12"},
	{"bert-base-chinese", "google/chinese_L-12_H-768_A-12"},
	{"bert-large-uncased-whole-word-masking", "google/wwm_uncased_L-24_H-1024_A-16"},
	{"bert-large-cased-whole-word-masking", "google/wwm_cased_L-24_H-1024_A-16"},
	{"google/bert_uncased_L-2_H-128_A-2", "google/uncased_L-2_H-128_A-2"},
	{"google/bert_uncased_L-4_H-256_A-4", "google/uncased_L-4_H-256_A-4"},
	{"google/bert_uncased_L-4_H-512_A-8", "google/uncased_L-4_H-512_A-8"},
	{"google/bert_uncased_L-8_H-512_A-8", "google/uncased_L-8_H-512_A-8"},
};

const char *published_source(const char *name)
{
	static const char owner[] = "google-bert/";
	if (strncmp(name, owner, strlen(owner)) == 0)
		name += strlen(owner);
	for (size_t i = 0; i < sizeof published / sizeof *published; i++)
		if (strcmp(published[i].name, name) == 0 || strcmp(published[i].source, name) == 0)
			return published[i].source;
	return NULL;
}

/* ORG/NAME, or NAME alone, such as all-MiniLM-L6-v2. If there is a folder ORG, a path in it is meant; and a name that ends like a
 * file's is not a model's. */
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
	if (name == path) /* a mistyped name of a file is more likely, unless it is made of several words */
		return strchr(name, '-') != strrchr(name, '-');
	snprintf(folder, sizeof folder, "%.*s", (int)owner, path);
	return !file_exists(folder);
}

void published_hint(const char *path, const char *advice)
{
	const char *source = published_source(path), *slash = strchr(path, '/'), *name = slash ? slash + 1 : path;
	if (source)
		error_hint("models are folders on this machine: `bertc download %s` fetches this one into download/%s", source,
			   source);
	else if (looks_like_hub_name(path))
		error_hint("%s%sif this is a model on the Hugging Face Hub: hf download %s%s --local-dir %s, then give the "
			   "folder %s",
			   advice, advice[0] ? "; " : "", slash ? "" : "OWNER/", path, name, name);
	else
		error_hint("%s", advice);
}
