/* What the block runner tells the memory checks (access.cc). */
#ifndef EMULATION_ACCESS_H
#define EMULATION_ACCESS_H

#include <stddef.h>

/* Device memory has been freed. */
void access_forget(const void *memory, size_t bytes);
void access_launch(const void *parameters, size_t bytes, bool early);
void access_block(unsigned block, const void *shared, size_t bytes);
/* The thread that is running ends. */
void access_end(void);
/* The thread that runs from now on, and its stack; -1: none. */
void access_thread(int thread, const void *stack, size_t bytes);
/* A barrier of the block, or of a warp, has been passed. */
void access_block_epoch(void);
void access_warp_epoch(int warp);
void access_pause(bool pause);
const char *access_kernel_name(const void *kernel);

#endif
