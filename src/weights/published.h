/* Names of published models: what to do with a name that is not a file here. */
#ifndef WEIGHTS_PUBLISHED_H
#define WEIGHTS_PUBLISHED_H

/* The source of `bertc download` with the model that transformers' users call `name` ("bert-base-uncased", with or without
 * "google-bert/"); NULL if there is none. */
const char *published_source(const char *name);
/* Sets the hint of the last error, that `path` does not exist: how that model is fetched, if there is such a source; else the
 * advice ("" = none) and, if the path looks like the name of a model on the Hugging Face Hub, how to fetch one from there. */
void published_hint(const char *path, const char *advice);

#endif
