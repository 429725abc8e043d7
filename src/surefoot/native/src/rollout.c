/* Collecting a rollout: actions, rewards, episode ends, and the values of successors. */
#include "rollout.h"
#include <time.h>

/* Reading the clock costs as much as a step of CartPole. So if the first steps of all streams take at most FAST seconds each, the time
 * of every fourth of the others is taken, and a time above LONG is an interruption, which counts once. */
#define FIRST 16
#define FAST 2e-6
#define LONG 1e-4
#define EVERY 4
#define MOST_ROWS (1 << 20) /* rows per call of `values`, whose count is an int */

int sf_all_finite(const float *x, int64_t n) {
    float sum = 0.0f; /* x - x is 0, or NaN if x is not finite */
    for (int64_t i = 0; i < n; i++) sum += x[i] - x[i];
    return sum == 0.0f;
}

/* True if values are computed after the rollout: one call with many rows costs less than many calls with a few. A value does
 * not depend on the other rows of a call, so the digits are the same. */
static int values_are_deferred(const sf_net *net, const sf_rollout *rollout) { return rollout->obs && !net->shared && !net->memories; }

/* Let the memories of the network continue from those of the rollout's streams, the first of which is `stream`. */
static void lend_memory(sf_net *net, const sf_rollout *rollout, int64_t stream, const uint8_t *fresh) {
    for (int m = 0; m < net->memories; m++) net->carry[m] = rollout->carry[m] + stream * rollout->carried;
    net->start = fresh;
}

void sf_rollout_act(sf_net *net, sf_rng *rng, sf_rollout *rollout, int64_t t, const float *obs, const uint8_t *mask,
                    int deterministic) {
    const int64_t n = rollout->streams, at = t * n, bytes = rollout->action_bytes;
    if (rollout->obs) memcpy(rollout->obs + at * net->inputs, obs, n * net->inputs * sizeof(float));
    if (rollout->mask) memcpy(rollout->mask + at * net->options, mask, n * net->options);
    if (net->head == SF_GSDE && !deterministic && (t == 0 || (net->noise_every && t % net->noise_every == 0))) net->ops->draw_noise(net, rng, (int)n);
    net->exploring = 1;
    lend_memory(net, rollout, 0, rollout->start + at);
    net->ops->act(net, rng, (int)n, obs, mask, deterministic, (char *)rollout->action + at * bytes, (char *)rollout->env_action + at * bytes,
                  rollout->log_prob + at, values_are_deferred(net, rollout) ? NULL : rollout->value + at);
    net->exploring = 0;
}

void sf_rollout_finish(sf_net *net, sf_rollout *rollout, const float *obs) {
    const int64_t n = rollout->streams, last = (int64_t)(rollout->steps - 1) * n, most = MOST_ROWS / n + 1;
    for (int64_t t = 0; values_are_deferred(net, rollout) && t < rollout->steps; t += most) {
        const int64_t steps = rollout->steps - t < most ? rollout->steps - t : most;
        net->ops->values(net, (int)(steps * n), rollout->obs + t * n * net->inputs, rollout->value + t * n);
    }
    /* Truncated steps have the value of their final observation already; the others of the last row get that of `obs`. */
    for (int64_t begin = 0; begin < n; begin += SF_ROWS) {
        float now[SF_ROWS];
        uint8_t fresh[SF_ROWS];
        const int rows = (int)(n - begin < SF_ROWS ? n - begin : SF_ROWS);
        for (int i = 0; i < rows; i++) {
            const int64_t at = last + begin + i;
            fresh[i] = rollout->terminated[at] | rollout->truncated[at] | !rollout->valid[at];
        }
        lend_memory(net, rollout, begin, fresh);
        net->ops->values(net, rows, obs + begin * net->inputs, now);
        for (int i = 0; i < rows; i++)
            if (!rollout->truncated[last + begin + i]) rollout->next_value[last + begin + i] = now[i];
    }
    for (int64_t i = 0; i < last; i++)
        if (!rollout->truncated[i]) rollout->next_value[i] = rollout->value[i + n];
}

static double clock_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Update returns and lengths with step t; 1 if its rewards are finite. */
static int count_step(const sf_rollout *rollout, int64_t t, sf_collection *c) {
    const int64_t n = rollout->streams, at = t * n;
    int finite = 1;
    for (int64_t i = 0; i < n; i++) {
        finite &= sf_is_finite_reward(rollout->reward[at + i]);
        c->returns[i] += rollout->reward[at + i];
        c->lengths[i] += 1;
        c->start[i] = 0;
    }
    return finite;
}

/* Log the episodes that ended at step t; a truncated one gets the value of its final observation. */
static void end_episodes(sf_net *net, sf_rollout *rollout, int64_t t, const float *final_obs, sf_collection *c) {
    const int64_t n = rollout->streams, at = t * n;
    for (int64_t i = 0; i < n; i++) {
        if (!rollout->terminated[at + i] && !rollout->truncated[at + i]) continue;
        if (rollout->truncated[at + i] && !c->deterministic) {
            lend_memory(net, rollout, i, NULL);
            net->ops->values(net, 1, final_obs + i * net->inputs, rollout->next_value + at + i);
        }
        const double entry[4] = {(double)i, c->returns[i], (double)c->lengths[i], rollout->truncated[at + i]};
        memcpy(c->ended + 4 * c->episodes++, entry, sizeof entry);
        c->returns[i] = 0.0;
        c->lengths[i] = 0;
        c->start[i] = 1;
    }
}

int sf_rollout_collect(sf_net *net, sf_rng *rng, sf_rollout *rollout, sf_streams *streams, sf_collection *c) {
    const int64_t n = rollout->streams;
    float *final_obs = malloc(n * net->inputs * sizeof *final_obs);
    if (!final_obs) return 0;
    c->bad_step = -1;
    double sampled = 0.0;
    int every = 1;
    for (int64_t t = 0; t < rollout->steps && c->bad_step < 0; t++) {
        if (t == FIRST && c->seconds < FIRST * FAST) every = EVERY;
        const int timing = t % every == 0;
        const int64_t at = t * n;
        memcpy(rollout->start + at, c->start, n);
        sf_rollout_act(net, rng, rollout, t, c->obs, NULL, c->deterministic);
        const double before = timing ? clock_now() : 0.0;
        const int ended = sf_streams_step(streams, (char *)rollout->env_action + at * rollout->action_bytes, c->obs,
                                          rollout->reward + at, rollout->terminated + at, rollout->truncated + at, final_obs);
        if (timing) {
            const double seconds = clock_now() - before;
            if (every == 1 || seconds > LONG)
                c->seconds += seconds;
            else
                sampled += seconds;
        }
        const int finite = sf_all_finite(c->obs, n * net->inputs) && (!ended || sf_all_finite(final_obs, n * net->inputs));
        if (!(count_step(rollout, t, c) && finite)) c->bad_step = t;
        if (ended) end_episodes(net, rollout, t, final_obs, c);
    }
    c->seconds += sampled * every;
    if (c->bad_step < 0 && !c->deterministic) {
        memset(rollout->valid, 1, (size_t)(rollout->steps * n));
        sf_rollout_finish(net, rollout, c->obs);
    }
    free(final_obs);
    return 1;
}
