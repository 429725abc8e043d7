/* N streams of one environment, stepped together. A stream whose episode ends begins the next one in the same step. */
#ifndef SF_STREAMS_H
#define SF_STREAMS_H

#include "surefoot_env.h"
#include "threads.h"

#define SF_STREAMS_CAPSULE "surefoot.streams"

typedef struct sf_streams {
    const surefoot_env *env;
    int n;
    surefoot_rng rng;
    double *state;    /* [n][state_size] */
    int64_t *elapsed; /* [n] steps taken in the running episode */
    double *scratch;  /* for start_many */
    int *ended;       /* [n] the streams whose episode ended in this step */
    int busy;         /* a call without the GIL is stepping these streams */
    int empty;        /* there is nothing to step yet */
    sf_pool *pool;    /* threads that step streams besides the caller's, or NULL; only for streams that share no generator */
    void *owned;      /* what `env` is a part of and `release` frees, or NULL */
    void (*release)(void *);
} sf_streams;

/* NULL if out of memory. The generator is all zeros until it is set. */
sf_streams *sf_streams_new(const surefoot_env *env, int n);
void sf_streams_free(sf_streams *s);

/* Begin new episodes where `which` [n] is not 0 (everywhere if NULL), and write those rows of obs [n][obs_size]. */
void sf_streams_begin(sf_streams *s, const uint8_t *which, float *obs);

/* Write the current observations, obs [n][obs_size]. */
void sf_streams_observe(const sf_streams *s, float *obs);

/* One step. `action` is int64 [n] or float [n][action_size]. `obs` [n][obs_size] is the observation after the reset where an
 * episode ended; `final_obs` [n][obs_size] is the true successor, the same as `obs` where none ended (may be NULL).
 * Returns how many episodes ended. */
int sf_streams_step(sf_streams *s, const void *action, float *obs, double *reward, uint8_t *terminated,
                    uint8_t *truncated, float *final_obs);

/* The built-in environment of this name, or NULL. */
const surefoot_env *sf_classic(const char *name);

/* 1 if `env` can be run, else 0 with a Python exception that names the problem. */
int sf_check_env(const surefoot_env *env);

/* CartPole-v0 and CartPole-v1; the other built-in environments are in classic.c. */
extern const surefoot_env sf_cartpole[2];

/* `n` numbers within ±reach: one variable of n streams. */
static inline void sf_uniform_row(double *row, int n, double reach, surefoot_rng *rng) {
    for (int i = 0; i < n; i++) row[i] = surefoot_uniform(rng, -reach, reach);
}

#endif
