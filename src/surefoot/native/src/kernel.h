/* The standard MLP actor-critic in plain memory, one update of it, and the operations that each instruction set provides.
 * Weights and optimizer slots belong to torch; the kernel holds their addresses. */
#ifndef SF_KERNEL_H
#define SF_KERNEL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "allocate.h"
#include "random.h"

#define SF_ROWS 256       /* rows per pass through the network: at the usual widths their activations stay in the second cache */
#define SF_MAX_DEPTH 8    /* hidden layers per trunk; deeper networks use the torch path */
#define SF_MAX_CHOICES 64 /* parts of a multi-discrete action */
#define SF_MAX_TENSORS (4 * SF_MAX_DEPTH + 13) /* weight and bias of each layer of two trunks, two output layers and two memories, log_std */
#define SF_MAX_BLOCKS (8 * SF_MAX_DEPTH + 64) /* allocations per network: at most 5 per layer and 24 others */
#define SF_MAX_ROWS (1 << 30) /* samples, steps or streams per call: small enough that no size in bytes overflows */

/* Per gradient step: the numbers of one row of the update's table, in the order of `COLUMNS` in learn/report_builder.py. */
#define SF_COLUMNS 11

/* Python passes these by name; network.c has the names. */
enum { SF_TANH, SF_RELU, SF_ELU, SF_SILU, SF_GELU, SF_LEAKY_RELU };
enum { SF_CATEGORICAL, SF_GAUSSIAN, SF_SQUASHED, SF_GSDE, SF_BETA }; /* of the numbers; the first means that there are none */
enum { SF_NO_MEMORY, SF_GRU, SF_LSTM };
enum { SF_ADAM, SF_ADAMW, SF_SGD, SF_RMSPROP };

/* One parameter tensor of torch, its two optimizer slots (NULL if unused) and its step counter. */
typedef struct {
    float *value, *first, *second, *step, *grad;
    int64_t size;
    int of_critic; /* only the critic uses it: it learns at its own rate */
} sf_tensor;

typedef struct {
    int inputs, outputs;
    int at;             /* of a first layer: where its inputs begin in a row of net->input */
    int weight, bias;   /* indices of tensors */
    int ld;             /* floats between two rows of this layer's output */
    float *forward;     /* Wᵀ in zero-padded panels, for the forward product */
    float *backward;    /* W in panels, for the backward product */
    float *bias_padded;
    float *out, *pre;   /* [rows][ld] activations; pre-activations if the derivative needs them, else the same memory */
    int *used, used_count, finite; /* of a first layer with many inputs: those that are not zero in this pass (zero_inputs.inc) */
    float *used_columns;
} sf_layer;

/* What one trunk sees of an observation, normalised on its own. */
typedef struct {
    int size, ld;               /* numbers, and floats between two rows */
    float *rows;                /* [rows][ld] where observations are put: in net->input, or before a memory on their own */
    const float *shift, *scale; /* of the normaliser, or NULL */
    float clip;
} sf_view;

/* A GRU or an LSTM before a trunk (memory.inc). */
typedef struct {
    int gates, size, carried; /* gates per unit, units, floats that a stream carries from step to step */
    int view;                 /* what it sees */
    sf_layer inward, onward;  /* weights of the observation and of the hidden state; inward.at: its columns in a row of observations */
} sf_memory;

typedef struct sf_net {
    int inputs, ld_inputs, activation, shared, head, panel;
    int choices, options, numbers, outputs; /* an action is `choices` indices, then `numbers` numbers; options: of all choices */
    int views;                  /* 1, or 2 if the critic sees something else; a row of observations has one after the other */
    sf_view view[2];
    int rows;                   /* SF_ROWS; longer inputs are processed in parts */
    int sizes[SF_MAX_CHOICES];  /* options per choice */
    int actor_depth, critic_depth, tensors;
    sf_layer actor[SF_MAX_DEPTH + 1], critic[SF_MAX_DEPTH + 1]; /* the last one of each is the output layer */
    sf_tensor tensor[SF_MAX_TENSORS];
    int log_std;                /* index of a tensor, or -1 */
    float *log_scale;           /* [numbers] log of half the action range, of a Beta head of all of it */
    float log_std_low, log_std_high; /* range that log_std is clamped to */
    float *low, *high;          /* [numbers] bounds of env_action */
    int64_t first_option;       /* env_action of option 0 of a single choice */
    float temperature;          /* logits are divided by it */

    float *grad;                /* gradients of all tensors, contiguous */
    int first_pass;             /* 1 while `grad` holds zeros: in the first pass of a minibatch */
    int64_t parameters;
    float *snapshot;            /* parameters and optimizer slots for a rollback */
    int has_snapshot;
    float *input;               /* [rows][ld_inputs] */
    float *output, *d_output;   /* [outputs][rows]: logits, then means or what else numbers are drawn from, and their gradient */
    float *value, *d_value;     /* [rows] */
    float *delta[2];            /* [rows][widest layer] gradients between two layers */
    float *panel_copy;          /* one panel of a right-hand side */
    float *scratch;             /* [rows][ld] for a head with many outputs; a transposed weight gradient */
    float *row[8];              /* [rows] per-sample numbers of the loss */
    int32_t *action_index;      /* [choices][rows] */
    float *action_value;        /* [numbers][rows] */
    float *mask;                /* [options][rows]: 1 for a valid option, 0 for an invalid one */
    float *random;              /* random numbers of one pass; losses use it as scratch */
    void *block[SF_MAX_BLOCKS];
    int blocks;
    /* Only of a gSDE head: its noise depends on the actor's last features. */
    int features, noise_every, exploring; /* draw matrices every noise_every steps of a rollout, 0: only at its start; 1 in a rollout */
    float *noise;               /* [noise_streams][features][numbers] exploration matrices */
    int noise_streams;
    float *squared;             /* [rows][ld] squares of the features */
    float *variance, *noise_grad; /* [numbers][rows] */
    float *std_squared, *noise_sum; /* [numbers · features] */
    /* Only with memory: trunks then see hidden states in net->input. One memory if the trunk is shared, else one for each. */
    int memories;
    sf_memory memory[2];
    float *carry[2];            /* [streams][carried] during a call, Python's */
    const uint8_t *start;       /* [streams] during a call: an episode begins; NULL if none does */
    float *hidden, *next_carry, *workspace; /* of one step: [rows][size], [rows][carried], sf_step_workspace */

    const struct sf_ops *ops;
    int busy;                   /* a call without the GIL is using this network */
} sf_net;

typedef struct {
    int64_t samples, columns; /* minibatches are chosen from columns: samples, or with memory streams of `length` steps */
    int64_t length;
    const uint8_t *start, *valid; /* with memory, [length][columns]: an episode begins; learned from (NULL: all) */
    const float *context[2];  /* with memory, [columns][carried]: the state that each column begins with */
    const float *features; /* [samples][inputs], normalised */
    const void *action;
    const float *log_prob, *value, *advantage, *target, *ref_log_prob;
    const uint8_t *mask;
    const int64_t *order; /* [epochs][columns] */
    const int64_t *sizes; /* [minibatches] */
    int minibatches, epochs;
    float clip, value_clip, vf_coef, ent_coef, kl_coef, max_grad_norm, kl_limit, dual_clip; /* negative: not used */
    float log_ratio_limit;
    int standardize, optimizer;
    double lr, critic_lr_scale, weight_decay, eps, momentum, beta1, beta2, alpha;
    int max_bad_steps;
    /* in and out */
    int bad_in_a_row;
    /* out */
    double *table; /* [epochs · minibatches][SF_COLUMNS] */
    int *epoch_of; /* [epochs · minibatches] */
    int steps, stopped, bad_steps, rolled_back, epochs_begun;
    double first_ratio_error;
} sf_update;

struct sf_scan;

/* One instruction set. */
typedef struct sf_ops {
    const char *name;
    int panel; /* columns per panel */
    /* Rearrange the current weights for the products. */
    void (*pack)(sf_net *net, int backward_too);
    /* `value` may be NULL to skip the critic. */
    void (*act)(sf_net *net, sf_rng *rng, int n, const float *obs, const uint8_t *mask, int deterministic, void *action,
                void *env_action, float *log_prob, float *value);
    void (*values)(sf_net *net, int n, const float *obs, float *value);
    void (*draw_noise)(sf_net *net, sf_rng *rng, int streams);
    int (*learn)(sf_net *net, sf_update *update); /* 0 if out of memory */
    /* log π of the update's actions under the current weights. */
    void (*log_probs)(sf_net *net, const sf_update *update, float *log_prob);
    int (*scan_forward)(const struct sf_scan *scan); /* both return 0 if out of memory */
    int (*scan_backward)(const struct sf_scan *scan);
    void (*function)(int which, int n, const float *x, float *y);
    void (*multiply)(int m, int n, int k, const float *a, const float *b, float *c);
} sf_ops;

extern const sf_ops sf_ops_base;
#if defined(__x86_64__)
extern const sf_ops sf_ops_avx2, sf_ops_avx512, sf_ops_wide;
#endif

static inline int sf_round_up(int n, int step) { return (n + step - 1) / step * step; }

/* Columns of an action: int64 if all of them are choices, else float. */
static inline int sf_action_width(const sf_net *net) { return net->choices + net->numbers; }
static inline size_t sf_action_bytes(const sf_net *net) {
    return sf_action_width(net) * (net->numbers ? sizeof(float) : sizeof(int64_t));
}

#endif
