/* Names of published models: what to do with a name that is not a file here. */
#ifndef WEIGHTS_PUBLISHED_H
#define WEIGHTS_PUBLISHED_H

/* The source of `bertc download` with the model that transformers' users call `name` ("bert-base-uncased", with or without
 * "google-bert/"); NULL if there is none. */
const char *published_source(const char *name);
/* If `path`, which does not exist, looks like the name of a model on the Hugging Face Hub, sets the hint of the last error to how
 * that model is fetched. */
void published_hint(const char *path);

#endif
