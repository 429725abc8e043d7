/* Aligned memory, on every system. */
#ifndef SF_ALLOCATE_H
#define SF_ALLOCATE_H

#include <stdlib.h>

/* Memory aligned to a cache line; NULL if there is none. `bytes` is a multiple of 64. Windows has no aligned_alloc, and its
 * replacement needs another function to free. */
#if defined(_WIN32)
#include <malloc.h>
static inline void *sf_allocate(size_t bytes) { return _aligned_malloc(bytes, 64); }
static inline void sf_free(void *memory) { _aligned_free(memory); }
#else
static inline void *sf_allocate(size_t bytes) { return aligned_alloc(64, bytes); }
static inline void sf_free(void *memory) { free(memory); }
#endif

#endif
