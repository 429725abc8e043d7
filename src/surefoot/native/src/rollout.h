/* A rollout that is being collected: arrays [T][N][…] that Python owns, and the functions that fill them. */
#ifndef SF_ROLLOUT_H
#define SF_ROLLOUT_H

#include "kernel.h"
#include "streams.h"

typedef struct {
    int steps, streams;
    int inputs, options, head; /* of the network that it was made for */
    int64_t action_bytes;      /* per stream */
    float *obs;                /* [T][N][inputs], or NULL if Python stores the observations */
    uint8_t *mask;             /* [T][N][options] or NULL */
    void *action;              /* int64 [T][N][choices] or float [T][N][choices + numbers] */
    void *env_action;          /* the same, as the environment takes it */
    float *log_prob, *value, *next_value;
    double *reward;
    uint8_t *terminated, *truncated, *start, *valid;
    int carried;               /* per stream and memory of the network, 0 without memory */
    float *carry[2];           /* [N][carried] what each memory of the network carries on, updated by every step */
} sf_rollout;

/* One step of all streams as an environment returns it, and the running sums of their episodes. */
typedef struct {
    const double *reward;
    const uint8_t *terminated, *truncated, *valid;
    double *returns;
    int64_t *lengths;
} sf_step;

/* What the streams of a built-in environment carry from one rollout to the next, and the episodes that ended. */
typedef struct {
    float *obs;       /* [N][inputs] */
    uint8_t *start;   /* [N] */
    double *returns;  /* [N] */
    int64_t *lengths; /* [N] */
    double *ended;    /* [T · N][4]: stream, return, length, truncated */
    int64_t episodes; /* rows of `ended` that were written */
    int64_t bad_step; /* the step that held a non-finite number, or -1 */
    double seconds;   /* spent in the environment, estimated from some of its steps */
    int deterministic; /* for an evaluation: most likely actions, and no values */
} sf_collection;

enum { SF_RECORDED, SF_EPISODE_ENDED, SF_NON_FINITE };

int sf_all_finite(const float *x, int64_t n);

/* Rewards are double here and float32 in the learner: one that overflows there counts as non-finite. */
static inline int sf_is_finite_reward(double x) { return fabs(x) <= 3.4028234663852886e38; }

/* Sample actions for all streams, or take the most likely ones, and write them as step t. */
void sf_rollout_act(sf_net *net, sf_rng *rng, sf_rollout *rollout, int64_t t, const float *obs, const uint8_t *mask, int deterministic);

/* Write step t and return SF_RECORDED or SF_EPISODE_ENDED; with a non-finite reward write nothing and return SF_NON_FINITE. */
int sf_rollout_record(sf_rollout *rollout, int64_t t, const sf_step *step);

/* Compute the values that were deferred, and next_value of every step that was not truncated. `obs` follows the last step. */
void sf_rollout_finish(sf_net *net, sf_rollout *rollout, const float *obs);

/* Collect all steps from a built-in environment. Returns 0 if out of memory. */
int sf_rollout_collect(sf_net *net, sf_rng *rng, sf_rollout *rollout, sf_streams *streams, sf_collection *collection);

#endif
