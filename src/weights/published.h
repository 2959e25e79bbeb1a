/* Names of published models: what to do with a name that is not a file here. */
#ifndef WEIGHTS_PUBLISHED_H
#define WEIGHTS_PUBLISHED_H

/* Sets the hint of the last error, that `path` does not exist: the advice ("" = none) and, if the path looks like the name of a
 * model on the Hugging Face Hub, how to get one from there. */
void published_hint(const char *path, const char *advice);

#endif
