/* Memory of a network: layers, activations, gradients and scratch, laid out for the widest vectors. */
#include "network.h"

/* The largest panel of any instruction set (AVX-512: NV · VL = 32 columns) and KC of gemm.h, its rows. */
#define WIDEST_PANEL 32
#define DEEPEST_PANEL 384

/* Bytes after each block that whole-vector loads may touch. The sanitizer build has none: they would hide an overrun. */
#if defined(SUREFOOT_SANITIZE)
#define SLACK 0
#else
#define SLACK 64
#endif

const char *const sf_activation_names[] = {
    [SF_TANH] = "tanh", [SF_RELU] = "relu", [SF_ELU] = "elu", [SF_SILU] = "silu",
    [SF_GELU] = "gelu", [SF_LEAKY_RELU] = "leaky_relu", NULL};
const char *const sf_head_names[] = {
    [SF_CATEGORICAL] = "categorical", [SF_GAUSSIAN] = "gaussian", [SF_SQUASHED] = "squashed", [SF_GSDE] = "gsde",
    [SF_BETA] = "beta", NULL};
const char *const sf_memory_names[] = {[SF_NO_MEMORY] = "none", [SF_GRU] = "gru", [SF_LSTM] = "lstm", NULL};
const char *const sf_optimizer_names[] = {
    [SF_ADAM] = "adam", [SF_ADAMW] = "adamw", [SF_SGD] = "sgd", [SF_RMSPROP] = "rmsprop", NULL};

/* Zeroed floats that are freed with the network, aligned to a cache line; NULL if out of memory. */
void *sf_net_allocate(sf_net *net, int64_t floats) {
    if (net->blocks == SF_MAX_BLOCKS) return NULL;
    const size_t bytes = ((size_t)floats * sizeof(float) + 63) / 64 * 64 + SLACK;
    void *memory = sf_allocate(bytes);
    if (!memory) return NULL;
    memset(memory, 0, bytes);
    return net->block[net->blocks++] = memory;
}

void sf_net_free(sf_net *net) {
    free(net->noise);
    for (int i = 0; i < net->blocks; i++) sf_free(net->block[i]);
    free(net);
}

/* Floats between two rows: whole panels, and an odd number of cache lines so that rows do not share cache sets. */
static int row_length(int width, int panel) {
    const int ld = sf_round_up(sf_round_up(width, panel), 16);
    return ld / 16 % 2 ? ld : ld + 16;
}

int sf_build_layer(sf_net *net, sf_layer *layer, int inputs, int outputs, int is_output) {
    layer->inputs = inputs;
    layer->outputs = outputs;
    layer->weight = net->tensors;
    net->tensor[net->tensors++].size = (int64_t)inputs * outputs;
    layer->bias = net->tensors;
    net->tensor[net->tensors++].size = outputs;
    layer->ld = row_length(outputs, WIDEST_PANEL);
    layer->forward = sf_net_allocate(net, (int64_t)sf_round_up(outputs, net->panel) * inputs);
    layer->backward = sf_net_allocate(net, (int64_t)sf_round_up(inputs, net->panel) * outputs);
    layer->bias_padded = sf_net_allocate(net, sf_round_up(outputs, net->panel));
    if (!layer->forward || !layer->backward || !layer->bias_padded) return 0;
    if (is_output) return 1;
    layer->out = sf_net_allocate(net, (int64_t)net->rows * layer->ld);
    layer->pre = net->activation == SF_SILU || net->activation == SF_GELU ? sf_net_allocate(net, (int64_t)net->rows * layer->ld) : layer->out;
    return layer->out && layer->pre;
}

/* Floats between the inputs of the actor's and of the critic's trunk in a row of net->input, which is read in whole panels. */
static int between_trunks(const sf_net *net) {
    if (net->shared || (net->views == 1 && !net->memories)) return 0;
    return sf_round_up(net->memories ? net->memory[0].size : net->view[0].size, WIDEST_PANEL);
}

/* The hidden layers of trunk `which`; returns the width of the last one, or 0 if out of memory. */
static int build_trunk(sf_net *net, sf_layer *layers, const sf_ints *widths, int which) {
    int inputs = net->memories ? net->memory[0].size : net->view[which && net->views == 2].size;
    layers[0].at = which * between_trunks(net);
    for (int l = 0; l < widths->count; inputs = widths->value[l++])
        if (!sf_build_layer(net, &layers[l], inputs, widths->value[l], 0) || (l == 0 && !sf_build_used(net, layers))) return 0;
    return inputs;
}

/* Enlarge `*ld` to the longest row of a trunk and `*scratch` to its largest transposed weight gradient. */
static void measure_trunk(const sf_layer *layers, int depth, int64_t *ld, int64_t *scratch) {
    for (int l = 0; l < depth; l++) {
        const int64_t transposed = (int64_t)layers[l].inputs * sf_round_up(layers[l].outputs, WIDEST_PANEL);
        if (layers[l].ld > *ld) *ld = layers[l].ld;
        if (transposed > *scratch) *scratch = transposed;
    }
}

/* The tensors in the order of `layers_of` in nets/kernel_support.py: trunks, value output, policy output, log_std, memories. */
static int build_layers(sf_net *net, const sf_net_spec *spec) {
    const int actor_width = build_trunk(net, net->actor, &spec->actor_widths, 0);
    if (!actor_width) return 0;
    if (net->shared) memcpy(net->critic, net->actor, sizeof net->actor);
    const int critics = net->tensors;
    const int critic_width = net->shared ? actor_width : build_trunk(net, net->critic, &spec->critic_widths, 1);
    if (!critic_width || !sf_build_layer(net, &net->critic[net->critic_depth], critic_width, 1, 1)) return 0;
    for (int t = critics; t < net->tensors; t++) net->tensor[t].of_critic = 1;
    if (!sf_build_layer(net, &net->actor[net->actor_depth], actor_width, net->outputs, 1)) return 0;
    net->log_std = -1;
    if (net->head != SF_CATEGORICAL && net->head != SF_BETA) {
        net->log_std = net->tensors;
        net->features = actor_width;
        net->tensor[net->tensors++].size = (int64_t)net->numbers * (net->head == SF_GSDE ? actor_width : 1);
    }
    for (int m = 0; m < net->memories; m++)
        if (!sf_build_memory(net, m)) return 0;
    return 1;
}

/* Where observations are put, and what a step of the memories works with; 0 if out of memory. */
static int build_views(sf_net *net) {
    for (int v = 0; v < net->views; v++) {
        sf_view *view = &net->view[v];
        view->rows = net->input + v * between_trunks(net);
        view->ld = net->ld_inputs;
        if (!net->memories) continue;
        view->ld = view->size;
        if (!(view->rows = sf_net_allocate(net, (int64_t)net->rows * view->size))) return 0;
    }
    return !net->memories || sf_build_step(net);
}

static int build_scratch(sf_net *net) {
    const int64_t rows = net->rows, outputs = net->outputs;
    int64_t widest = 0, scratch = rows * sf_round_up(net->outputs, WIDEST_PANEL);
    measure_trunk(net->actor, net->actor_depth, &widest, &scratch);
    measure_trunk(net->critic, net->critic_depth, &widest, &scratch);
    if (net->memories && widest < net->ld_inputs) widest = net->ld_inputs; /* gradients of hidden states */
    for (int m = 0; m < net->memories; m++) {
        int64_t ignored = 0;
        measure_trunk(&net->memory[m].inward, 1, &ignored, &scratch);
        measure_trunk(&net->memory[m].onward, 1, &ignored, &scratch);
    }
    for (int t = 0; t < net->tensors; t++) net->parameters += net->tensor[t].size;
    float *per_row = NULL;
    const struct {
        void *to;
        int64_t floats;
    } parts[] = {{&net->grad, net->parameters},
                 {&net->input, rows * net->ld_inputs},
                 {&net->output, outputs * rows},
                 {&net->d_output, outputs * rows},
                 {&net->value, rows},
                 {&net->d_value, rows},
                 {&net->delta[0], rows * widest},
                 {&net->delta[1], rows * widest},
                 {&net->panel_copy, DEEPEST_PANEL * WIDEST_PANEL},
                 {&net->scratch, scratch},
                 {&net->action_index, outputs * rows},
                 {&net->action_value, outputs * rows},
                 {&net->mask, outputs * rows},
                 {&net->random, 2 * outputs * rows + 256}, /* pairs of normals, each half padded to whole vectors */
                 {&net->low, net->numbers},
                 {&net->high, net->numbers},
                 {&net->log_scale, net->numbers},
                 {&per_row, 8 * rows}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        void *memory = sf_net_allocate(net, parts[i].floats);
        if (!memory) return 0;
        memcpy(parts[i].to, &memory, sizeof memory);
    }
    if (net->head == SF_GSDE && !sf_build_noise(net)) return 0;
    if (!build_views(net)) return 0;
    for (int i = 0; i < 8; i++) net->row[i] = per_row + i * rows;
    for (int64_t t = 0, at = 0; t < net->tensors; at += net->tensor[t++].size) net->tensor[t].grad = net->grad + at;
    return 1;
}

sf_net *sf_net_new(const sf_net_spec *spec, const sf_ops *ops) {
    sf_net *net = calloc(1, sizeof *net);
    if (!net) return NULL;
    *net = (sf_net){.ops = ops, .panel = ops->panel, .rows = SF_ROWS, .temperature = 1.0f,
                    .inputs = spec->inputs + spec->critic_inputs, .views = spec->critic_inputs ? 2 : 1,
                    .view = {{.size = spec->inputs}, {.size = spec->critic_inputs}},
                    .actor_depth = spec->actor_widths.count, .critic_depth = spec->critic_widths.count,
                    .shared = spec->shared, .activation = spec->activation, .head = spec->head,
                    .choices = spec->sizes.count, .numbers = spec->numbers, .first_option = spec->first_option,
                    .noise_every = spec->noise_every, .log_std_low = spec->log_std_low, .log_std_high = spec->log_std_high,
                    .memories = spec->memory == SF_NO_MEMORY ? 0 : spec->shared ? 1 : 2};
    for (int m = 0; m < net->memories; m++) {
        const int size = spec->memory_size, lstm = spec->memory == SF_LSTM;
        net->memory[m] = (sf_memory){.gates = lstm ? 4 : 3, .size = size, .carried = lstm ? 2 * size : size, .view = m && net->views == 2};
    }
    const int last = net->memories ? net->memory[0].size : net->view[net->views - 1].size;
    net->ld_inputs = row_length(between_trunks(net) + last, net->panel);
    for (int c = 0; c < net->choices; c++) net->options += net->sizes[c] = spec->sizes.value[c];
    net->outputs = net->options + net->numbers * (net->head == SF_BETA ? 2 : 1);
    if (!build_layers(net, spec) || !build_scratch(net)) {
        sf_net_free(net);
        return NULL;
    }
    for (int k = 0; spec->low && k < net->numbers; k++) {
        const float half = spec->high[k] / 2.0f - spec->low[k] / 2.0f;
        net->low[k] = spec->low[k];
        net->high[k] = spec->high[k];
        net->log_scale[k] = logf(net->head == SF_BETA ? 2.0f * half : half);
    }
    return net;
}

/* Copy every parameter, its two slots and its step between their addresses and the snapshot. */
static void copy_state(sf_net *net, int restore) {
    float *at = net->snapshot;
    for (int t = 0; t < net->tensors; t++) {
        float *parts[4] = {net->tensor[t].value, net->tensor[t].first, net->tensor[t].second, net->tensor[t].step};
        for (int i = 0; i < 4; i++) {
            const int64_t size = i == 3 ? 1 : net->tensor[t].size;
            if (!parts[i]) continue;
            memcpy(restore ? parts[i] : at, restore ? at : parts[i], size * sizeof(float));
            at += size;
        }
    }
}

int sf_net_save(sf_net *net) {
    if (!net->snapshot && !(net->snapshot = sf_net_allocate(net, 3 * net->parameters + net->tensors))) return 0;
    copy_state(net, 0);
    net->has_snapshot = 1;
    return 1;
}

void sf_net_restore(sf_net *net) { copy_state(net, 1); }
