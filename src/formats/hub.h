/* Models on the Hugging Face Hub, kept in the cache of huggingface_hub, so that each program finds the other's files:
 *
 *   CACHE/models--OWNER--NAME/refs/REVISION          the commit that a branch or tag was at
 *                             blobs/HASH             files by their SHA-256 (large ones) or their name in Git
 *                             snapshots/COMMIT/FILE  links to them
 *                             .no_exist/COMMIT/FILE  empty: the commit has no such file
 *   CACHE/.locks/models--OWNER--NAME/HASH.lock       held while a file is fetched
 *
 * The environment decides as it does for huggingface_hub: HF_HUB_CACHE, HF_HOME, HF_ENDPOINT (a mirror), HF_TOKEN (or the file
 * that `hf auth login` writes), HF_HUB_OFFLINE. Only the files that a BERT needs are fetched, at one commit; their sizes and
 * hashes must be those that the Hub lists. */
#ifndef FORMATS_HUB_H
#define FORMATS_HUB_H

#include <stdbool.h>
#include "base/error.h"
#include "base/path.h"
#include "formats/fetch.h"

#define HUB_PREFIX "hf:" /* of a path that means a model on the Hub */

/* Whether `name` has the form of a model's name there: OWNER/NAME or NAME, either with @REVISION (a branch, tag or commit). */
bool hub_is_name(const char *name);

/* Finds the model `name` (of that form; otherwise ERR_USAGE) and writes the path of its snapshot, a model folder whose last part
 * is the commit. A snapshot of the revision that is whole is used as it is, without a network; with `update`, the Hub is asked
 * what the revision is now. Processes that want the same file wait for the one that fetches it. ERR_USAGE: there is no such model
 * or revision; ERR_DATA: it has no weights that bertc could read; ERR_RESOURCE: the Hub cannot be reached, refuses access, or
 * sends something other than what it lists; STOPPED. */
MUST_USE enum status hub_fetch(const char *name, bool update, const struct fetch_settings *settings, char out[PATH_BYTES]);
/* The same without a network: *out_found says whether the cache has a snapshot that can be used. */
MUST_USE enum status hub_find(const char *name, char out[PATH_BYTES], bool *out_found);
/* Writes the name of the model whose snapshot the path is, or lies in. false: it is not in such a cache. */
bool hub_name_of(const char *path, char *out, size_t size);

#endif
