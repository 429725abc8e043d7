/* Advantages and value targets of a rollout (advantage.c). */
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

void sf_gae(const sf_gae_arrays *arrays);

#endif
