/* Advantages, value targets and statistics of a rollout (advantage.c). */
#ifndef SF_ADVANTAGE_H
#define SF_ADVANTAGE_H

#include <stdint.h>

/* Everything is [steps][streams]. */
typedef struct {
    int64_t steps, streams;
    const float *reward, *value, *next_value;
    const uint8_t *terminated, *truncated, *valid;
    double gamma, lam;
    float *advantage, *target;
} sf_gae_arrays;

typedef struct {
    double advantage_mean, advantage_std, reward_advantage_corr, explained_variance;
    double reward_mean, reward_std, value_mean, target_mean, target_std;
} sf_statistics;

void sf_gae(const sf_gae_arrays *arrays);
sf_statistics sf_rollout_statistics(int64_t n, const float *reward, const float *value, const float *target);

#endif
