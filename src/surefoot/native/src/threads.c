#include "threads.h"

#include <stdlib.h>

#ifdef _WIN32

sf_pool *sf_pool_new(int threads) { return (void)threads, NULL; }
void sf_pool_free(sf_pool *pool) { (void)pool; }
void sf_pool_run(sf_pool *pool, void (*run)(void *job, int i), void *job, int items) {
    (void)pool;
    for (int i = 0; i < items; i++) run(job, i);
}

#else

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

struct sf_pool {
    pthread_mutex_t lock;
    pthread_cond_t asked, done;
    void (*run)(void *, int);
    void *job;
    int items, working, stopped, threads;
    unsigned round; /* counts jobs: a thread that knows another number has work to do */
    atomic_int next;
    pid_t owner; /* after a fork, the child has no threads */
    pthread_t thread[];
};

static void take_items(sf_pool *pool) {
    for (int i; (i = atomic_fetch_add(&pool->next, 1)) < pool->items;) pool->run(pool->job, i);
}

static void *serve(void *of) {
    sf_pool *pool = of;
    unsigned known = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->round == known && !pool->stopped) pthread_cond_wait(&pool->asked, &pool->lock);
        if (pool->stopped) break;
        known = pool->round;
        pthread_mutex_unlock(&pool->lock);
        take_items(pool);
        pthread_mutex_lock(&pool->lock);
        if (--pool->working == 0) pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

sf_pool *sf_pool_new(int threads) {
    sf_pool *pool = calloc(1, sizeof *pool + (size_t)threads * sizeof *pool->thread);
    if (!pool) return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->asked, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->owner = getpid();
    sigset_t all, before; /* Python's handlers belong to the thread that asks */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->threads < threads && pthread_create(pool->thread + pool->threads, NULL, serve, pool) == 0) pool->threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pool->threads == threads) return pool;
    sf_pool_free(pool);
    return NULL;
}

void sf_pool_free(sf_pool *pool) {
    if (!pool) return;
    if (pool->owner == getpid()) {
        pthread_mutex_lock(&pool->lock);
        pool->stopped = 1;
        pthread_cond_broadcast(&pool->asked);
        pthread_mutex_unlock(&pool->lock);
        for (int i = 0; i < pool->threads; i++) pthread_join(pool->thread[i], NULL);
    }
    free(pool);
}

void sf_pool_run(sf_pool *pool, void (*run)(void *job, int i), void *job, int items) {
    if (pool->owner != getpid()) {
        for (int i = 0; i < items; i++) run(job, i);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->run = run;
    pool->job = job;
    pool->items = items;
    pool->working = pool->threads;
    pool->round++;
    atomic_store(&pool->next, 0);
    pthread_cond_broadcast(&pool->asked);
    pthread_mutex_unlock(&pool->lock);
    take_items(pool);
    pthread_mutex_lock(&pool->lock);
    while (pool->working) pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

#endif
