/* A pool of threads that take the items of a job, beside the thread that asks. */
#ifndef SF_THREADS_H
#define SF_THREADS_H

typedef struct sf_pool sf_pool;

/* NULL if this platform has no POSIX threads, or if they cannot be started. */
sf_pool *sf_pool_new(int threads);
void sf_pool_free(sf_pool *pool);

/* Call run(job, i) for every i below `items`, each once, in any thread and order; return when all have returned. */
void sf_pool_run(sf_pool *pool, void (*run)(void *job, int i), void *job, int items);

#endif
