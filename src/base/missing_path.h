/* Hints at what was meant by a path that is not there. */
#ifndef BASE_MISSING_PATH_H
#define BASE_MISSING_PATH_H

/* If the path is an address of something on a network, the hint of the last error becomes how to get at it; otherwise, if its
 * folder has an entry of a similar name, that name. */
void hint_at_missing(const char *path);

#endif
