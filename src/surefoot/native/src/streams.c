/* Stepping N streams. Random numbers are drawn in the order of the numpy definition (envs/builtin/streams.py): all streams move,
 * then all that ended begin again, in stream order, from one generator. */
#include "streams.h"

#include <stdlib.h>
#include <string.h>

sf_streams *sf_streams_new(const surefoot_env *env, int n) {
    sf_streams *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    const size_t numbers = (size_t)n * (size_t)env->state_size;
    s->env = env;
    s->n = n;
    s->state = calloc(numbers, sizeof *s->state);
    s->scratch = calloc(numbers, sizeof *s->scratch);
    s->elapsed = calloc((size_t)n, sizeof *s->elapsed);
    s->ended = calloc((size_t)n, sizeof *s->ended);
    if (s->state && s->scratch && s->elapsed && s->ended) return s;
    sf_streams_free(s);
    return NULL;
}

void sf_streams_free(sf_streams *s) {
    if (!s) return;
    free(s->state);
    free(s->scratch);
    free(s->elapsed);
    free(s->ended);
    sf_pool_free(s->pool);
    if (s->release) s->release(s->owned);
    free(s);
}

/* Begin a new episode in the first `count` streams that `ended` lists. */
static void begin(sf_streams *s, int count, float *obs) {
    const surefoot_env *env = s->env;
    const size_t size = (size_t)env->state_size, width = (size_t)env->obs_size;
    if (env->start_many && count) env->start_many(s->scratch, count, &s->rng);
    for (int j = 0; j < count; j++) {
        const size_t i = (size_t)s->ended[j];
        double *state = s->state + i * size;
        if (env->start_many)
            for (size_t k = 0; k < size; k++) state[k] = s->scratch[k * (size_t)count + (size_t)j];
        else
            env->start(state, &s->rng);
        s->elapsed[i] = 0;
        env->observe(state, obs + i * width);
    }
}

void sf_streams_begin(sf_streams *s, const uint8_t *which, float *obs) {
    int count = 0;
    for (int i = 0; i < s->n; i++)
        if (!which || which[i]) s->ended[count++] = i;
    begin(s, count, obs);
}

void sf_streams_observe(const sf_streams *s, float *obs) {
    const surefoot_env *env = s->env;
    for (size_t i = 0; i < (size_t)s->n; i++)
        env->observe(s->state + i * (size_t)env->state_size, obs + i * (size_t)env->obs_size);
}

/* One step of all streams: where its results go. */
typedef struct {
    sf_streams *streams;
    const void *action;
    float *obs;
    double *reward;
    uint8_t *terminated, *truncated;
} step_job;

static void step_stream(void *of, int i) {
    const step_job *job = of;
    sf_streams *s = job->streams;
    const surefoot_env *env = s->env;
    double *state = s->state + (size_t)i * (size_t)env->state_size;
    const int64_t limit = env->max_episode_steps > 0 ? env->max_episode_steps : INT64_MAX;
    const int64_t choice = env->choices ? ((const int64_t *)job->action)[i] : 0;
    const float *push = env->choices ? NULL : (const float *)job->action + (size_t)i * (size_t)env->action_size;
    const int over = env->step(state, choice, push, job->reward + i, &s->rng) != 0;
    const int late = ++s->elapsed[i] >= limit;
    job->terminated[i] = (uint8_t)over;
    job->truncated[i] = (uint8_t)(late & !over);
    env->observe(state, job->obs + (size_t)i * (size_t)env->obs_size);
}

int sf_streams_step(sf_streams *s, const void *action, float *obs, double *reward, uint8_t *terminated,
                    uint8_t *truncated, float *final_obs) {
    step_job job = {s, action, obs, reward, terminated, truncated};
    if (s->pool)
        sf_pool_run(s->pool, step_stream, &job, s->n);
    else
        for (int i = 0; i < s->n; i++) step_stream(&job, i);
    int count = 0;
    for (int i = 0; i < s->n; i++) {
        s->ended[count] = i;
        count += terminated[i] | truncated[i];
    }
    if (final_obs) memcpy(final_obs, obs, (size_t)s->n * (size_t)s->env->obs_size * sizeof *obs);
    begin(s, count, obs);
    return count;
}
