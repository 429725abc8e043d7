/* A GRU or an LSTM over time (scan.inc). Arrays are [T][N][…]; the carry is [N][size], for an LSTM [N][hidden, cell]. */
#ifndef SF_SCAN_H
#define SF_SCAN_H

#include <stdint.h>

/* Up to this many rows (T · N) use dot products: packing the weights into panels would take longer than the products. */
#define SCAN_DOTS 16

typedef struct sf_scan {
    int gates_per_unit; /* 3 for a GRU, 4 for an LSTM */
    int steps, streams, size;
    const float *inward, *carry, *weight, *bias; /* [T][N][gates·size], [N][…], [gates·size][size], [gates·size] */
    /* For a single step, instead of inward: [N][inputs], [gates·size][inputs], [gates·size] */
    int inputs;
    const float *x, *weight_in, *bias_in;
    const uint8_t *start; /* [T][N] or NULL */
    float *hidden, *carried; /* `carried` may be `carry` */
    float *workspace;        /* of sf_step_workspace floats for a single step, or NULL: then memory is allocated */
    /* Saved for backward, or NULL: gates after their activations; cells of an LSTM, or h Wᵀ + b of the n gate of a GRU */
    float *gates, *saved;
    const float *d_hidden, *d_carried; /* NULL means 0 */
    float *d_inward, *d_carry;
    float *d_onward; /* GRU: the gradient of h Wᵀ + b; for an LSTM it equals d_inward */
    float *before;   /* [T][N][size] the hidden state that each step began with */
} sf_scan;

/* Floats that one step of this many streams works with at most, on any instruction set: rows are padded to whole panels. */
static inline int64_t sf_step_workspace(int64_t streams, int64_t gates_per_unit, int64_t size, int64_t inputs) {
    const int64_t width = gates_per_unit * size, padding = 64;
    return streams * (inputs + 2 * size + 2 * width + 4 * padding) + (width + padding) * (size + 1) + padding;
}

#endif
