/* Memory for the compression libraries. The sanitizer maps large blocks anew each time, which would take most of a
 * target's time; here freed blocks are kept for reuse. The libraries themselves are not instrumented, so no checks are
 * lost. A target that includes this header defines POOL_BZIP2, POOL_ZSTD or POOL_XZ for the libraries that it links. */
#ifndef TESTS_FUZZ_POOL_H
#define TESTS_FUZZ_POOL_H

#include <dlfcn.h>
#include "fuzz.h"

#define POOL_BLOCKS 64
#define POOL_LEAST ((size_t)1 << 14)
#define POOL_MOST ((size_t)4 << 20)

static struct pool_block {
	void *memory;
	size_t size;
	bool used;
} pool_blocks[POOL_BLOCKS];

static void *pool_take(void *context, size_t size)
{
	(void)context;
	int i = 0;
	if (size < POOL_LEAST || size > POOL_MOST)
		return malloc(size);
	while (i < POOL_BLOCKS && pool_blocks[i].memory && (pool_blocks[i].used || pool_blocks[i].size != size))
		i++;
	if (i == POOL_BLOCKS)
		return malloc(size);
	struct pool_block *block = &pool_blocks[i];
	if (!block->memory)
		*block = (struct pool_block){malloc(size), size, false};
	block->used = block->memory != NULL;
	return block->memory;
}

static void pool_give(void *context, void *memory)
{
	(void)context;
	for (int i = 0; i < POOL_BLOCKS; i++) {
		if (memory && pool_blocks[i].memory == memory) {
			pool_blocks[i].used = false;
			return;
		}
	}
	free(memory);
}

/* The library's own function of this name. */
#define POOL_REAL(type, name) ((type)(uintptr_t)dlsym(RTLD_NEXT, name))

#ifdef POOL_BZIP2
#include <bzlib.h>
static void *pool_take_items(void *context, int count, int size)
{
	return pool_take(context, (size_t)count * (size_t)size);
}

int BZ2_bzDecompressInit(bz_stream *bz, int verbosity, int is_small)
{
	static int (*real)(bz_stream *, int, int);
	if (!real)
		real = POOL_REAL(int (*)(bz_stream *, int, int), "BZ2_bzDecompressInit");
	bz->bzalloc = pool_take_items;
	bz->bzfree = pool_give;
	return real(bz, verbosity, is_small);
}

int BZ2_bzCompressInit(bz_stream *bz, int level, int verbosity, int work)
{
	static int (*real)(bz_stream *, int, int, int);
	if (!real)
		real = POOL_REAL(int (*)(bz_stream *, int, int, int), "BZ2_bzCompressInit");
	bz->bzalloc = pool_take_items;
	bz->bzfree = pool_give;
	return real(bz, level, verbosity, work);
}
#endif

#ifdef POOL_ZSTD
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
ZSTD_DStream *ZSTD_createDStream(void)
{
	return ZSTD_createDCtx_advanced((ZSTD_customMem){pool_take, pool_give, NULL});
}
#endif

#ifdef POOL_XZ
#include <lzma.h>
static void *pool_take_array(void *context, size_t count, size_t size)
{
	return pool_take(context, count * size);
}

lzma_ret lzma_stream_decoder(lzma_stream *xz, uint64_t limit, uint32_t flags)
{
	static lzma_ret (*real)(lzma_stream *, uint64_t, uint32_t);
	static const lzma_allocator allocator = {pool_take_array, pool_give, NULL};
	if (!real)
		real = POOL_REAL(lzma_ret(*)(lzma_stream *, uint64_t, uint32_t), "lzma_stream_decoder");
	xz->allocator = &allocator;
	return real(xz, limit, flags);
}
#endif

#endif
