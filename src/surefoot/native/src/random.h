/* The generator that draws actions: xoshiro256++ (Blackman, Vigna 2019). */
#ifndef SF_RANDOM_H
#define SF_RANDOM_H

#include <stdint.h>

typedef struct {
    uint64_t s[4];
} sf_rng;

static inline uint64_t sf_rotate_left(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static inline uint64_t sf_next_bits(sf_rng *rng) {
    uint64_t *s = rng->s;
    const uint64_t result = sf_rotate_left(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = sf_rotate_left(s[3], 45);
    return result;
}

/* One of 2^23 floats in (0, 1), both ends excluded. */
static inline float sf_next_uniform(sf_rng *rng) { return ((float)(sf_next_bits(rng) >> 41) + 0.5f) * (1.0f / 8388608.0f); }

#endif
