/* Tells apart files of the same size and time without reading all of them. */
#ifndef BASE_FILE_SAMPLE_H
#define BASE_FILE_SAMPLE_H

#include <stdint.h>

#include "base/path.h"

/* Hash of 64 pieces spread evenly over a file: files unpacked from archives often have the same time, and two models or versions
 * of a table the same size. 0 for what is not a regular file, of which nothing is read. `stamp`: that of the file. */
uint64_t file_sample_hash(const char *path, const struct file_stamp *stamp);

#endif
