/* Write an environment in C and step it at the kernel's full speed.
 *
 * Fill in one `surefoot_env`, return it from a function called `surefoot_env_main`, compile to a shared library:
 *
 *     cc -O2 -shared -fPIC -I "$(surefoot include)" my_world.c -o my_world.so -lm
 *     surefoot train ./my_world.so
 */
#ifndef SUREFOOT_ENV_H
#define SUREFOOT_ENV_H

#include <stddef.h>
#include <stdint.h>

#define SUREFOOT_ENV_VERSION 1

/* PCG64 (O'Neill 2014) with numpy's seeding and digits. One generator serves all streams of an environment. */
typedef struct {
    unsigned __int128 state, inc;
} surefoot_rng;

/* 64 random bits. */
static inline uint64_t surefoot_bits(surefoot_rng *rng) {
    const unsigned __int128 multiplier = ((unsigned __int128)2549297995355413924ULL << 64) | 4865540595714422341ULL;
    rng->state = rng->state * multiplier + rng->inc;
    const uint64_t x = (uint64_t)(rng->state >> 64) ^ (uint64_t)rng->state;
    const unsigned turn = (unsigned)(rng->state >> 122);
    return (x >> turn) | (x << ((64 - turn) & 63));
}

/* A number in [low, high), the same as numpy's Generator.uniform. */
static inline double surefoot_uniform(surefoot_rng *rng, double low, double high) {
    return low + (high - low) * ((double)(surefoot_bits(rng) >> 11) * (1.0 / 9007199254740992.0));
}

/* An environment. The whole state of a stream is `state_size` doubles: anything else is lost on resume. */
typedef struct surefoot_env {
    int version;                /* SUREFOOT_ENV_VERSION */
    const char *name;           /* shown in runs and reports */
    int state_size;
    int obs_size;               /* float32 numbers per observation */
    const float *obs_low;       /* [obs_size] or NULL for no bound */
    const float *obs_high;
    int choices;                /* discrete: the number of actions; 0 for continuous */
    int action_size;            /* continuous: numbers per action; 0 for discrete */
    const float *action_low;    /* [action_size], continuous only */
    const float *action_high;
    int max_episode_steps;      /* 0 for no limit */
    /* Begin an episode: write all of `state`. May be NULL if there is `start_many`. */
    void (*start)(double *state, surefoot_rng *rng);
    /* Take an action (`choice` if discrete, `action` if continuous) and write `*reward`; returns 1 if the episode has
       terminated, else 0. The caller truncates episodes after `max_episode_steps`. */
    int (*step)(double *state, int64_t choice, const float *action, double *reward, surefoot_rng *rng);
    /* Write the observation of a state. */
    void (*observe)(const double *state, float *obs);
    /* NULL, or: begin `n` episodes in one call, state[k * n + i] being number k of stream i. For environments that must draw
       their random numbers in the order of a vectorised definition. */
    void (*start_many)(double *state, int n, surefoot_rng *rng);
} surefoot_env;

/* The function that your library must define. */
#ifdef __cplusplus
extern "C"
#endif
const surefoot_env *surefoot_env_main(void);

#endif
