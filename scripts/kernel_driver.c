/* Runs the kernel without Python: `kernel_driver SET` acts and learns with made-up weights and rollouts, for each kind of head,
 * and prints what comes out. `scripts/compilers.py` compares the numbers of several compilers and machines. */
#include "network.h"
#include <stdio.h>

#define STEPS 64
#define INPUTS 7
#define WIDTH 33
#define MEMORY 16

static uint64_t state = 1;
static float number(void) { /* in ±1 */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(int64_t)state / 9223372036854775808.0);
}

static void print_row(const char *name, const float *x, int64_t n) {
    printf("%s", name);
    for (int64_t i = 0; i < n; i++) printf(" %.9g", (double)x[i]);
    printf("\n");
}

static void run(const sf_ops *ops, int head, int activation, int optimizer, int shared, int memory) {
    static float values[4][1 << 14], obs[STEPS * INPUTS], log_prob[STEPS], value[STEPS], advantage[STEPS], target[STEPS];
    static float low[3] = {-1, -1, -1}, high[3] = {1, 1, 1};
    static float carry[2][STEPS * 2 * MEMORY];
    static uint8_t start[STEPS];
    static char action[STEPS * 4 * 8], env_action[STEPS * 4 * 8];
    sf_net_spec spec = {.inputs = INPUTS, .shared = shared, .activation = activation, .head = head, .log_std_low = -20, .log_std_high = 2,
                        .memory = memory, .memory_size = MEMORY};
    spec.actor_widths = spec.critic_widths = (sf_ints){.count = 2, .value = {WIDTH, WIDTH}};
    if (head == SF_CATEGORICAL || activation == SF_GELU) spec.sizes = (sf_ints){.count = 1, .value = {3}};
    if (head != SF_CATEGORICAL) spec.numbers = 3, spec.low = low, spec.high = high;
    sf_net *net = sf_net_new(&spec, ops);
    if (!net) exit(2);
    int64_t at = 0;
    memset(values, 0, sizeof values);
    for (int t = 0; t < net->tensors; t++) {
        sf_tensor *tensor = &net->tensor[t];
        tensor->value = values[0] + at;
        tensor->first = values[1] + at;
        tensor->second = values[2] + at;
        tensor->step = values[3] + t;
        for (int64_t i = 0; i < tensor->size; i++) tensor->value[i] = 0.3f * number();
        at += tensor->size;
    }
    for (int i = 0; i < STEPS * INPUTS; i++) obs[i] = 2.0f * number();
    sf_rng rng = {{1, 2, 3, 4}};
    memset(carry, 0, sizeof carry);
    for (int i = 0; i < STEPS; i++) start[i] = i % 7 == 0;
    net->carry[0] = carry[0];
    net->carry[1] = carry[1];
    net->start = start;
    ops->pack(net, 0);
    ops->act(net, &rng, STEPS, obs, NULL, 0, action, env_action, log_prob, value);
    print_row("log_prob", log_prob, STEPS);
    print_row("value", value, STEPS);
    int64_t order[2 * STEPS], sizes[2] = {40, 24};
    const int64_t length = memory ? 8 : 1, columns = STEPS / length;
    if (memory) sizes[0] = 5, sizes[1] = 3;
    double table[4 * SF_COLUMNS];
    int epoch_of[4];
    for (int64_t i = 0; i < 2 * columns; i++) order[i] = i < columns ? i : 2 * columns - 1 - i;
    for (int i = 0; i < STEPS; i++) advantage[i] = number(), target[i] = value[i] + advantage[i];
    sf_update u = {.samples = STEPS, .columns = columns, .length = length, .start = start, .context = {carry[0], carry[1]}, .features = obs, .action = action, .log_prob = log_prob, .value = value,
                   .advantage = advantage, .target = target, .order = order, .sizes = sizes, .minibatches = 2, .epochs = 2,
                   .clip = 0.2f, .value_clip = -1, .vf_coef = 0.5f, .ent_coef = 0.01f, .max_grad_norm = 0.5f, .kl_limit = -1,
                   .dual_clip = -1, .log_ratio_limit = 20, .standardize = 1, .optimizer = optimizer, .lr = 1e-3, .critic_lr_scale = 1, .eps = 1e-5,
                   .beta1 = 0.9, .beta2 = 0.999, .alpha = 0.99, .max_bad_steps = 3, .table = table, .epoch_of = epoch_of};
    ops->learn(net, &u);
    print_row("weights", values[0], at);
    printf("steps %d\n", u.steps);
    sf_net_free(net);
}

#ifndef SETS
#define SETS &sf_ops_base, &sf_ops_avx2, &sf_ops_avx512, &sf_ops_wide
#endif

int main(int count, char **arguments) {
    const sf_ops *all[] = {SETS};
    for (size_t i = 0; count == 2 && i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i]->name, arguments[1])) continue;
        for (int head = SF_CATEGORICAL; head <= SF_BETA; head++)
            for (int activation = SF_TANH; activation <= SF_LEAKY_RELU; activation++)
                run(all[i], head, activation, activation % 4, activation % 2, SF_NO_MEMORY);
        for (int memory = SF_GRU; memory <= SF_LSTM; memory++)
            for (int shared = 0; shared < 2; shared++) run(all[i], SF_CATEGORICAL, SF_TANH, SF_ADAM, shared, memory);
        return 0;
    }
    fprintf(stderr, "usage: kernel_driver SET\n");
    return 64;
}
