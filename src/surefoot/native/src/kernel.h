/* The standard MLP actor-critic as the kernel sees it: plain memory, some of it shared with torch tensors. */
#ifndef SF_KERNEL_H
#define SF_KERNEL_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SF_MAX_DEPTH 8
#define SF_MAX_TENSORS (4 * SF_MAX_DEPTH + 5)
#define SF_MAX_CHOICES 64
#define SF_TABLE 11 /* numbers kept of each gradient step */
#define SF_LOG_RATIO_LIMIT 20.0f
#define SF_BAD_STEPS 3

enum { SF_TANH, SF_RELU, SF_ELU, SF_SILU, SF_LEAKY_RELU };
enum { SF_CATEGORICAL, SF_GAUSSIAN, SF_SQUASHED };
enum { SF_ADAM, SF_ADAMW, SF_SGD, SF_RMSPROP };

/* One tensor of torch's: the parameter, two slots of the optimiser (NULL where it has none), its step counter. */
typedef struct {
    float *value, *first, *second, *step, *grad;
    int64_t size;
} sf_tensor;

typedef struct {
    int inputs, outputs;
    int weight, bias;      /* which tensors */
    int ld;                /* floats between two rows of this layer's output */
    float *forward;        /* Wᵀ in panels, zero-padded: what a forward pass multiplies by */
    float *backward;       /* W in panels: what a backward pass multiplies by */
    float *bias_padded;
    float *out, *pre;      /* [rows][ld] activations; pre-activations where their derivative needs them */
} sf_layer;

typedef struct sf_net {
    int inputs, ld_inputs, activation, shared, head, choices, outputs, rows, panel;
    int sizes[SF_MAX_CHOICES]; /* options of each choice */
    int actor_depth, critic_depth, tensors;
    sf_layer actor[SF_MAX_DEPTH + 1], critic[SF_MAX_DEPTH + 1]; /* the last of each is its output layer */
    sf_tensor tensor[SF_MAX_TENSORS];
    int log_std;               /* which tensor, or -1 */
    const float *shift, *scale; /* of the normaliser, or NULL */
    float obs_clip;
    float *log_scale;          /* [outputs] of a squashed head */
    float *low, *high;         /* [outputs] bounds of what the world takes */
    int64_t first_option;      /* what the world calls option 0 of a single choice */

    float *grad;               /* all gradients, one after the other */
    int64_t parameters;
    float *kept;               /* parameters and slots to go back to */
    int has_kept;
    float *input;              /* [rows][ld_inputs] */
    float *raw, *draw;         /* [outputs][rows]: what the head is made of, and its gradient */
    float *value, *dvalue;     /* [rows] */
    float *delta[2];           /* [rows][widest] gradients on their way down */
    float *packed;             /* one panel of a right-hand side */
    float *wide;               /* [rows][ld] where the head has many outputs */
    float *row[8];             /* [rows] scratch of the loss */
    int32_t *chosen;           /* [choices][rows] */
    float *chosen_real;        /* [outputs][rows] */
    float *allowed;            /* [outputs][rows]: 1 allowed, 0 forbidden */
    float *uniform;            /* random numbers of one step */
    void *memory[8 * SF_MAX_DEPTH + 64];
    int memories;
    const struct sf_ops *ops;
} sf_net;

/* One rollout's worth of memory, [T, N, …], written row by row while acting. */
typedef struct {
    int steps, streams;
    int inputs, outputs, head; /* of the network that it was made for */
    int64_t action_bytes;
    float *obs;          /* [T][N][inputs] as seen */
    uint8_t *mask;       /* [T][N][outputs] or NULL */
    void *action;        /* int64 [T][N][choices] or float [T][N][outputs] */
    void *env_action;    /* the same, as the world takes it */
    float *log_prob, *value, *next_value;
    double *reward;
    uint8_t *terminated, *truncated, *start, *valid;
} sf_tape;

typedef struct {
    uint64_t s[4];
} sf_rng; /* xoshiro256++ (Blackman, Vigna 2019) */

typedef struct {
    int64_t samples;
    const float *features; /* [samples][inputs], normalised */
    const void *action;
    const float *log_prob, *value, *advantage, *target, *ref_log_prob;
    const uint8_t *mask;
    const int64_t *order; /* [epochs][samples] */
    const int64_t *size;  /* [minibatches] */
    int minibatches, epochs;
    float clip, value_clip, vf_coef, ent_coef, kl_coef, max_grad_norm, kl_limit, dual_clip;
    int standardize, optimizer;
    double lr, weight_decay, eps, momentum;
    /* in and out */
    int bad_in_a_row;
    /* out */
    double *table; /* [epochs * minibatches][SF_TABLE] */
    int steps, stopped, bad_steps, rolled_back, epochs_begun;
    int *epoch_of; /* [epochs * minibatches] */
    double first_ratio_error;
} sf_update;

/* A GRU or an LSTM over time: see scan.inc. Everything is [T][N][…], what is carried [N][size] and behind it an LSTM's cell. */
typedef struct {
    int gates_of; /* 3 of a GRU, 4 of an LSTM */
    int steps, streams, size;
    const float *inward, *carry, *weight, *bias; /* [T][N][gates·size], …, [gates·size][size], [gates·size] */
    /* of a single step, instead of inward: [N][inputs], [gates·size][inputs], [gates·size] */
    int inputs;
    const float *x, *weight_in, *bias_in;
    const uint8_t *start;                        /* [T][N] or NULL */
    float *hidden, *carried;
    /* for backward, or NULL: gates after their functions; an LSTM's cells, or h Wᵀ + b of a GRU's n */
    float *gates, *kept;
    const float *d_hidden, *d_carried; /* or NULL: 0 */
    float *d_inward, *d_carry;
    float *d_onward; /* of a GRU: the gradient of h Wᵀ + b, for an LSTM the same as d_inward */
    float *before;   /* [T][N][size] what each step began with */
} sf_scan;

#define SCAN_DOTS 16 /* up to so many rows in all go without panels: making them would take longer */

typedef struct sf_ops {
    const char *name;
    int lanes, panel; /* floats in a vector; columns of a panel */
    void (*pack)(sf_net *net, int backward_too);
    /* `value` may be NULL: then the critic is not asked. */
    void (*act)(sf_net *net, sf_rng *rng, int n, const float *obs, const uint8_t *mask, int deterministic, void *action,
                void *env_action, float *log_prob, float *value);
    void (*values)(sf_net *net, int n, const float *obs, float *value);
    void (*learn)(sf_net *net, sf_update *update);
    /* log π of the update's actions, by the weights of now. */
    void (*log_probs)(sf_net *net, const sf_update *update, float *log_prob);
    int (*scan_forward)(const sf_scan *scan); /* both: 0 if there is no memory for it */
    int (*scan_backward)(const sf_scan *scan);
    void (*function)(int which, int n, const float *x, float *y);
    void (*multiply)(int m, int n, int k, const float *a, const float *b, float *c);
} sf_ops;

extern const sf_ops sf_ops_base;
#if defined(__x86_64__)
extern const sf_ops sf_ops_avx2, sf_ops_avx512, sf_ops_wide;
#endif

static inline int sf_round_up(int n, int step) { return (n + step - 1) / step * step; }

static inline int sf_options(const sf_net *net) { return net->head == SF_CATEGORICAL ? net->choices : net->outputs; }

#endif
