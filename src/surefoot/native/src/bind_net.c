/* The network's side of the module: build one, point it at torch's memory, act, learn, collect. */
#include "binding.h"
#include "kernel.h"
#include "streams.h"
#include <time.h>

#define NET "surefoot.net"
#define TAPE "surefoot.tape"
#define ROWS 256
/* Rows that go through the network together: their activations stay in the second cache */
#define WIDEST_PANEL 32
#define DEEPEST_PANEL 384
#define MOST (1 << 30) /* rows, steps, streams: few enough that no size in bytes overflows */

/* ---- which instruction set ---- */

static const sf_ops *ops_called(const char *name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (avx512 && (!strcmp(name, "avx512") || !strcmp(name, "auto"))) return &sf_ops_avx512;
    if (avx2 && (!strcmp(name, "avx2") || !strcmp(name, "auto"))) return &sf_ops_avx2;
    if (avx2 && !strcmp(name, "wide")) return &sf_ops_wide;
#endif
    return !strcmp(name, "base") || !strcmp(name, "auto") ? &sf_ops_base : NULL;
}

static PyObject *instruction_sets(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    static const char *const all[] = {"avx512", "avx2", "wide", "base"};
    PyObject *found = PyList_New(0);
    for (size_t i = 0; found && i < sizeof all / sizeof *all; i++) {
        if (!ops_called(all[i])) continue;
        PyObject *name = PyUnicode_FromString(all[i]);
        if (!name || PyList_Append(found, name) < 0) Py_CLEAR(found);
        Py_XDECREF(name);
    }
    return found;
}

const sf_ops *sf_ops_of(PyObject *name) {
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    const sf_ops *ops = text ? ops_called(text) : NULL;
    if (text && !ops) PyErr_Format(PyExc_ValueError, "this machine has no instruction set %s", text);
    return ops;
}

static sf_net *net_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, NET); }
static sf_tape *tape_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, TAPE); }

/* ---- a network ---- */

#if defined(SUREFOOT_SANITIZE)
#define SLACK 0 /* nothing that would hide a step too far */
#else
#define SLACK 64
#endif

static void *room(sf_net *net, int64_t floats) {
    if (net->memories == (int)(sizeof net->memory / sizeof *net->memory)) return NULL;
    const size_t bytes = ((size_t)floats * sizeof(float) + 63) / 64 * 64 + SLACK;
    void *memory = aligned_alloc(64, bytes);
    if (!memory) return NULL;
    memset(memory, 0, bytes);
    return net->memory[net->memories++] = memory;
}

static void release(sf_net *net) {
    for (int i = 0; i < net->memories; i++) free(net->memory[i]);
    free(net);
}

static void forget_net(PyObject *capsule) {
    sf_net *net = net_of(capsule);
    if (net) release(net);
    else PyErr_Clear();
}

/* Floats between two rows: whole panels, and an odd number of cache lines so that rows do not fall onto the same sets. */
static int row_length(int width, int panel) {
    const int ld = sf_round_up(sf_round_up(width, panel), 16);
    return ld / 16 % 2 ? ld : ld + 16;
}

static int build_layer(sf_net *net, sf_layer *layer, int inputs, int outputs, int is_output) {
    layer->inputs = inputs;
    layer->outputs = outputs;
    layer->weight = net->tensors;
    net->tensor[net->tensors++].size = (int64_t)inputs * outputs;
    layer->bias = net->tensors;
    net->tensor[net->tensors++].size = outputs;
    layer->ld = row_length(outputs, WIDEST_PANEL);
    layer->forward = room(net, (int64_t)sf_round_up(outputs, net->panel) * inputs);
    layer->backward = room(net, (int64_t)sf_round_up(inputs, net->panel) * outputs);
    layer->bias_padded = room(net, sf_round_up(outputs, net->panel));
    if (!layer->forward || !layer->backward || !layer->bias_padded) return 0;
    if (is_output) return 1;
    layer->out = room(net, (int64_t)net->rows * layer->ld);
    layer->pre = net->activation == SF_SILU ? room(net, (int64_t)net->rows * layer->ld) : layer->out;
    return layer->out && layer->pre;
}

static int build_trunk(sf_net *net, sf_layer *layers, const int *widths, int depth) {
    for (int l = 0, inputs = net->inputs; l < depth; inputs = widths[l++])
        if (!build_layer(net, &layers[l], inputs, widths[l], 0)) return 0;
    return 1;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static int build(sf_net *net, const int *actor, const int *critic) {
    if (!build_trunk(net, net->actor, actor, net->actor_depth)) return 0;
    if (net->shared) memcpy(net->critic, net->actor, sizeof net->actor);
    else if (!build_trunk(net, net->critic, critic, net->critic_depth)) return 0;
    const int seen = net->critic_depth ? critic[net->critic_depth - 1] : net->inputs;
    const int felt = net->actor_depth ? actor[net->actor_depth - 1] : net->inputs;
    if (!build_layer(net, &net->critic[net->critic_depth], seen, 1, 1)) return 0;
    if (!build_layer(net, &net->actor[net->actor_depth], felt, net->outputs, 1)) return 0;
    net->log_std = -1;
    if (net->head != SF_CATEGORICAL) {
        net->log_std = net->tensors;
        net->tensor[net->tensors++].size = net->outputs;
    }
    const int64_t rows = net->rows, outputs = net->outputs;
    int64_t widest = 0, wide = rows * sf_round_up(net->outputs, WIDEST_PANEL);
    for (int l = 0; l < net->actor_depth; l++) widest = larger(widest, net->actor[l].ld);
    for (int l = 0; l < net->critic_depth; l++) widest = larger(widest, net->critic[l].ld);
    /* A gradient is worked out transposed only if that wastes less, which it never does for two large sides. */
    for (int l = 0; l < net->actor_depth; l++)
        wide = larger(wide, (int64_t)net->actor[l].inputs * sf_round_up(net->actor[l].outputs, WIDEST_PANEL));
    for (int l = 0; l < net->critic_depth; l++)
        wide = larger(wide, (int64_t)net->critic[l].inputs * sf_round_up(net->critic[l].outputs, WIDEST_PANEL));
    net->parameters = 0;
    for (int t = 0; t < net->tensors; t++) net->parameters += net->tensor[t].size;
    net->grad = room(net, net->parameters);
    net->input = room(net, rows * net->ld_inputs);
    net->raw = room(net, outputs * rows);
    net->draw = room(net, outputs * rows);
    net->value = room(net, rows);
    net->dvalue = room(net, rows);
    net->delta[0] = room(net, rows * widest);
    net->delta[1] = room(net, rows * widest);
    net->packed = room(net, DEEPEST_PANEL * WIDEST_PANEL);
    net->wide = room(net, wide);
    net->chosen = room(net, outputs * rows);
    net->chosen_real = room(net, outputs * rows);
    net->allowed = room(net, outputs * rows);
    net->uniform = room(net, 2 * outputs * rows + 256);
    net->low = room(net, outputs);
    net->high = room(net, outputs);
    net->log_scale = room(net, outputs);
    float *row = room(net, 8 * rows);
    if (!net->grad || !net->input || !net->raw || !net->draw || !net->value || !net->dvalue || !net->delta[0] ||
        !net->delta[1] || !net->packed || !net->wide || !net->chosen || !net->chosen_real || !net->allowed ||
        !net->uniform || !net->low || !net->high || !net->log_scale || !row)
        return 0;
    for (int i = 0; i < 8; i++) net->row[i] = row + i * rows;
    for (int64_t t = 0, at = 0; t < net->tensors; at += net->tensor[t++].size) net->tensor[t].grad = net->grad + at;
    return 1;
}

/* A tuple of whole numbers, each from 1 to `most`; how many there were, or -1. */
static int whole_numbers(PyObject *tuple, int *into, int longest, int most, const char *what) {
    const Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
    if (count < 0) {
        PyErr_Format(PyExc_TypeError, "%s must be a tuple of whole numbers", what);
        return -1;
    }
    if (count > longest) {
        PyErr_Format(PyExc_ValueError, "%s has %zd entries; the kernel takes up to %d", what, count, longest);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        const long n = PyLong_AsLong(PyTuple_GetItem(tuple, i));
        if (n == -1 && PyErr_Occurred()) return -1;
        if (n < 1 || n > most) {
            PyErr_Format(PyExc_ValueError, "%s has %ld; it must be from 1 to %d", what, n, most);
            return -1;
        }
        into[i] = (int)n;
    }
    return (int)count;
}

/* net_new(instruction_set, inputs, actor_widths, critic_widths, shared, activation, head, sizes, first_option, low, high) */
static PyObject *net_new(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 11, "net_new")) return NULL;
    const sf_ops *ops = sf_ops_of(args[0]);
    if (!ops) return NULL;
    sf_net *net = calloc(1, sizeof *net);
    if (!net) return PyErr_NoMemory();
    int actor[SF_MAX_DEPTH], critic[SF_MAX_DEPTH];
    net->ops = ops;
    net->panel = ops->panel;
    net->rows = ROWS;
    int wrong = 0;
    net->inputs = (int)whole(args[1], 1, 1 << 20, "inputs", &wrong);
    if (!wrong) net->shared = (int)whole(args[4], 0, 1, "shared", &wrong);
    if (!wrong) net->activation = (int)whole(args[5], 0, SF_LEAKY_RELU, "activation", &wrong);
    if (!wrong) net->head = (int)whole(args[6], 0, SF_SQUASHED, "head", &wrong);
    if (!wrong) net->first_option = whole(args[8], INT64_MIN / 2, INT64_MAX / 2, "first_option", &wrong);
    if (wrong) goto failed;
    net->ld_inputs = row_length(net->inputs, net->panel);
    net->actor_depth = whole_numbers(args[2], actor, SF_MAX_DEPTH, 1 << 16, "actor_widths");
    if (net->actor_depth < 0) goto failed;
    net->critic_depth = whole_numbers(args[3], critic, SF_MAX_DEPTH, 1 << 16, "critic_widths");
    if (net->critic_depth < 0) goto failed;
    net->choices = whole_numbers(args[7], net->sizes, SF_MAX_CHOICES, 1 << 16, "sizes");
    if (net->choices < 0) goto failed;
    if (net->choices < 1 || (net->head != SF_CATEGORICAL && net->choices != 1) ||
        (net->shared && (net->actor_depth != net->critic_depth || memcmp(actor, critic, net->actor_depth * sizeof(int))))) {
        PyErr_SetString(PyExc_ValueError, "sizes or widths do not fit the head or a shared trunk");
        goto failed;
    }
    for (int c = 0; c < net->choices; c++) net->outputs += net->sizes[c];
    if (!build(net, actor, critic)) {
        PyErr_NoMemory();
        goto failed;
    }
    if (net->head != SF_CATEGORICAL) {
        const Py_ssize_t bytes = net->outputs * (Py_ssize_t)sizeof(float);
        const float *low = sf_memory(args[9], bytes, 0, "low");
        const float *high = low ? sf_memory(args[10], bytes, 0, "high") : NULL;
        if (!high) goto failed;
        memcpy(net->low, low, bytes);
        memcpy(net->high, high, bytes);
        for (int k = 0; k < net->outputs; k++) net->log_scale[k] = logf(high[k] / 2.0f - low[k] / 2.0f);
    }
    PyObject *capsule = PyCapsule_New(net, NET, forget_net);
    if (capsule) return capsule;
failed:
    release(net);
    return NULL;
}

/* net_sizes(net) → how many numbers each tensor has, in the kernel's order. */
static PyObject *net_sizes(PyObject *self, PyObject *capsule) {
    (void)self;
    sf_net *net = net_of(capsule);
    if (!net) return NULL;
    PyObject *sizes = PyTuple_New(net->tensors);
    for (int t = 0; sizes && t < net->tensors; t++) {
        PyObject *size = PyLong_FromLongLong(net->tensor[t].size);
        if (!size || PyTuple_SetItem(sizes, t, size) < 0) Py_CLEAR(sizes);
    }
    return sizes;
}

/* net_point(net, addresses uint64 [tensors][4], shift, scale, obs_clip): where torch keeps parameter, two slots and the
 * step of each tensor (0 for none), and the normaliser's two rows (0 for none). */
static PyObject *net_point(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 5, "net_point")) return NULL;
    sf_net *net = net_of(args[0]);
    if (!net) return NULL;
    const uint64_t *address = sf_memory(args[1], net->tensors * 4 * (Py_ssize_t)sizeof(uint64_t), 0, "addresses");
    if (!address) return NULL;
    const uint64_t shift = PyLong_AsUnsignedLongLong(args[2]), scale = PyLong_AsUnsignedLongLong(args[3]);
    const double clip = PyFloat_AsDouble(args[4]);
    if (PyErr_Occurred()) return NULL;
    if (!shift != !scale) {
        PyErr_SetString(PyExc_ValueError, "a normaliser has both shift and scale, or neither");
        return NULL;
    }
    for (int t = 0; t < net->tensors; t++)
        if (!address[4 * t]) {
            PyErr_Format(PyExc_ValueError, "tensor %d has no address", t);
            return NULL;
        }
    for (int t = 0; t < net->tensors; t++) {
        /* What was kept lies one after the other: with other slots than then it would go back to the wrong places. */
        if (!net->tensor[t].first != !address[4 * t + 1] || !net->tensor[t].second != !address[4 * t + 2] ||
            !net->tensor[t].step != !address[4 * t + 3])
            net->has_kept = 0;
        net->tensor[t].value = (float *)(uintptr_t)address[4 * t];
        net->tensor[t].first = (float *)(uintptr_t)address[4 * t + 1];
        net->tensor[t].second = (float *)(uintptr_t)address[4 * t + 2];
        net->tensor[t].step = (float *)(uintptr_t)address[4 * t + 3];
    }
    net->shift = (const float *)(uintptr_t)shift;
    net->scale = (const float *)(uintptr_t)scale;
    net->obs_clip = (float)clip;
    Py_RETURN_NONE;
}

static int is_pointed(const sf_net *net) {
    if (net->tensor[0].value) return 1;
    PyErr_SetString(PyExc_ValueError, "net_point was not called: the network has no weights yet");
    return 0;
}

/* net_pack(net): take the weights of now; acting uses them until called again. */
static PyObject *net_pack(PyObject *self, PyObject *capsule) {
    (void)self;
    sf_net *net = net_of(capsule);
    if (!net || !is_pointed(net)) return NULL;
    net->ops->pack(net, 0);
    Py_RETURN_NONE;
}

static Py_ssize_t action_bytes(const sf_net *net) {
    return net->head == SF_CATEGORICAL ? net->choices * (Py_ssize_t)sizeof(int64_t) : net->outputs * (Py_ssize_t)sizeof(float);
}

/* net_act(net, rng uint64 [4], n, obs, mask, deterministic, action, env_action, log_prob, value) */
static PyObject *net_act(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 10, "net_act")) return NULL;
    sf_net *net = net_of(args[0]);
    if (!net || !is_pointed(net)) return NULL;
    sf_rng *rng = sf_memory(args[1], sizeof *rng, 1, "rng");
    if (!rng) return NULL;
    int failed = 0;
    const Py_ssize_t n = whole(args[2], 0, MOST, "n", &failed);
    const int deterministic = failed ? 0 : (int)whole(args[5], 0, 1, "deterministic", &failed);
    if (failed) return NULL;
    const Py_ssize_t each = n * (Py_ssize_t)sizeof(float);
    const float *obs = sf_memory(args[3], each * net->inputs, 0, "obs");
    const uint8_t *mask = obs ? optional(args[4], n * net->outputs, 0, "mask", &failed) : NULL;
    void *action = obs && !failed ? sf_memory(args[6], n * action_bytes(net), 1, "action") : NULL;
    void *env_action = action ? sf_memory(args[7], n * action_bytes(net), 1, "env_action") : NULL;
    float *log_prob = env_action ? sf_memory(args[8], each, 1, "log_prob") : NULL;
    float *value = log_prob ? sf_memory(args[9], each, 1, "value") : NULL;
    if (!value) return NULL;
    net->ops->act(net, rng, (int)n, obs, mask, deterministic, action, env_action, log_prob, value);
    Py_RETURN_NONE;
}

/* net_values(net, n, obs, value) */
static PyObject *net_values(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 4, "net_values")) return NULL;
    sf_net *net = net_of(args[0]);
    if (!net || !is_pointed(net)) return NULL;
    int failed = 0;
    const Py_ssize_t n = whole(args[1], 0, MOST, "n", &failed);
    if (failed) return NULL;
    const float *obs = sf_memory(args[2], n * net->inputs * (Py_ssize_t)sizeof(float), 0, "obs");
    float *value = obs ? sf_memory(args[3], n * (Py_ssize_t)sizeof(float), 1, "value") : NULL;
    if (!value) return NULL;
    net->ops->values(net, (int)n, obs, value);
    Py_RETURN_NONE;
}

/* ---- learning ---- */

/* net_keep(net) / net_restore(net): parameters and optimiser memory to go back to. */
static float *each_memory(sf_net *net, float *at, int restore) {
    for (int t = 0; t < net->tensors; t++) {
        float *parts[4] = {net->tensor[t].value, net->tensor[t].first, net->tensor[t].second, net->tensor[t].step};
        for (int i = 0; i < 4; i++) {
            const int64_t size = i == 3 ? 1 : net->tensor[t].size;
            if (!parts[i]) continue;
            if (restore) memcpy(parts[i], at, size * sizeof(float));
            else if (at) memcpy(at, parts[i], size * sizeof(float));
            at = at ? at + size : at;
        }
    }
    return at;
}

static PyObject *net_keep(PyObject *self, PyObject *capsule) {
    (void)self;
    sf_net *net = net_of(capsule);
    if (!net || !is_pointed(net)) return NULL;
    if (!net->kept && !(net->kept = room(net, 3 * net->parameters + net->tensors))) return PyErr_NoMemory();
    each_memory(net, net->kept, 0);
    net->has_kept = 1;
    Py_RETURN_NONE;
}

static PyObject *net_restore(PyObject *self, PyObject *capsule) {
    (void)self;
    sf_net *net = net_of(capsule);
    if (!net || !is_pointed(net)) return NULL;
    if (!net->has_kept) {
        PyErr_SetString(PyExc_ValueError, "net_keep was not called: there is nothing to go back to");
        return NULL;
    }
    each_memory(net, net->kept, 1);
    Py_RETURN_NONE;
}

static int reals(PyObject *tuple, double *into, Py_ssize_t count, const char *what) {
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != count) {
        PyErr_Format(PyExc_ValueError, "%s must be a tuple of %zd numbers", what, count);
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        into[i] = PyFloat_AsDouble(PyTuple_GetItem(tuple, i));
        if (into[i] == -1.0 && PyErr_Occurred()) return 0;
    }
    return 1;
}

static int choices_fit(const sf_net *net, const sf_update *u) {
    if (net->head != SF_CATEGORICAL) return 1;
    const int64_t *action = u->action;
    for (int64_t i = 0; i < u->samples; i++)
        for (int c = 0; c < net->choices; c++)
            if (action[i * net->choices + c] < 0 || action[i * net->choices + c] >= net->sizes[c]) {
                PyErr_Format(PyExc_ValueError, "action %lld of sample %lld is none of %d options",
                             (long long)action[i * net->choices + c], (long long)i, net->sizes[c]);
                return 0;
            }
    return 1;
}

static int order_fits(const sf_update *u) {
    int64_t left = u->samples;
    int fits = 1;
    for (int b = 0; fits && b < u->minibatches; left -= u->size[b++]) fits = u->size[b] >= 1 && u->size[b] <= left;
    fits = fits && left == 0;
    for (int64_t i = 0; fits && i < u->samples * u->epochs; i++) fits = u->order[i] >= 0 && u->order[i] < u->samples;
    if (!fits) PyErr_SetString(PyExc_ValueError, "order or minibatch sizes point outside the batch");
    return fits;
}

/* net_learn(net, samples, features, action, log_prob, value, advantage, target, ref_log_prob, mask, order, sizes, epochs,
 *           (clip, value_clip, vf_coef, ent_coef, kl_coef, max_grad_norm, kl_limit, lr, weight_decay, eps, momentum,
 *            dual_clip),
 *           standardize, optimizer, bad_in_a_row, table, epoch_of)
 * → (steps, stopped, bad_steps, bad_in_a_row, rolled_back, epochs_begun, first_ratio_error) */
static PyObject *net_learn(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 19, "net_learn")) return NULL;
    sf_net *net = net_of(args[0]);
    if (!net || !is_pointed(net)) return NULL;
    int failed = 0;
    sf_update u = {.samples = whole(args[1], 1, MOST, "samples", &failed)};
    if (!failed) u.epochs = (int)whole(args[12], 1, 1 << 20, "epochs", &failed);
    if (!failed) u.standardize = (int)whole(args[14], 0, 1, "standardize", &failed);
    if (!failed) u.optimizer = (int)whole(args[15], 0, SF_RMSPROP, "optimizer", &failed);
    if (!failed) u.bad_in_a_row = (int)whole(args[16], 0, MOST, "bad_in_a_row", &failed);
    double number[12];
    if (failed || !reals(args[13], number, 12, "the knobs")) return NULL;
    for (int t = 0; t < net->tensors; t++)
        if (!net->tensor[t].first || (u.optimizer != SF_SGD && (!net->tensor[t].second || !net->tensor[t].step))) {
            PyErr_SetString(PyExc_ValueError, "the optimiser's memory has no address");
            return NULL;
        }
    const Py_ssize_t each = u.samples * (Py_ssize_t)sizeof(float);
    u.features = sf_memory(args[2], each * net->inputs, 0, "features");
    u.action = u.features ? sf_memory(args[3], u.samples * action_bytes(net), 0, "action") : NULL;
    u.log_prob = u.action ? sf_memory(args[4], each, 0, "log_prob") : NULL;
    u.value = u.log_prob ? sf_memory(args[5], each, 0, "value") : NULL;
    u.advantage = u.value ? sf_memory(args[6], each, 0, "advantage") : NULL;
    u.target = u.advantage ? sf_memory(args[7], each, 0, "target") : NULL;
    if (!u.target) return NULL;
    u.ref_log_prob = optional(args[8], each, 0, "ref_log_prob", &failed);
    u.mask = failed ? NULL : optional(args[9], u.samples * net->outputs, 0, "mask", &failed);
    if (failed) return NULL;
    u.order = sf_memory(args[10], u.epochs * u.samples * (Py_ssize_t)sizeof(int64_t), 0, "order");
    if (!u.order) return NULL;
    Py_buffer sizes;
    if (PyObject_GetBuffer(args[11], &sizes, PyBUF_SIMPLE) < 0) return NULL;
    const Py_ssize_t minibatches = sizes.len / (Py_ssize_t)sizeof(int64_t);
    PyBuffer_Release(&sizes);
    u.minibatches = (int)(minibatches < u.samples ? minibatches : u.samples); /* with more, one is empty */
    u.size = sf_memory(args[11], u.minibatches * (Py_ssize_t)sizeof(int64_t), 0, "sizes");
    if (!u.size) return NULL;
    const Py_ssize_t steps = (Py_ssize_t)u.epochs * u.minibatches;
    u.table = sf_memory(args[17], steps * SF_TABLE * (Py_ssize_t)sizeof(double), 1, "table");
    u.epoch_of = u.table ? sf_memory(args[18], steps * (Py_ssize_t)sizeof(int), 1, "epoch_of") : NULL;
    if (!u.epoch_of || !choices_fit(net, &u) || !order_fits(&u)) return NULL;
    u.clip = (float)number[0];
    u.value_clip = (float)number[1];
    u.vf_coef = (float)number[2];
    u.ent_coef = (float)number[3];
    u.kl_coef = (float)number[4];
    u.max_grad_norm = (float)number[5];
    u.kl_limit = (float)number[6];
    u.lr = number[7];
    u.weight_decay = number[8];
    u.eps = number[9];
    u.momentum = number[10];
    u.dual_clip = (float)number[11];
    Py_BEGIN_ALLOW_THREADS
    net->ops->learn(net, &u);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("(iiiiiid)", u.steps, u.stopped, u.bad_steps, u.bad_in_a_row, u.rolled_back, u.epochs_begun,
                         u.first_ratio_error);
}

/* net_log_probs(net, samples, features, action, mask, log_prob): into the last, by the weights of now. */
static PyObject *net_log_probs(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 6, "net_log_probs")) return NULL;
    sf_net *net = net_of(args[0]);
    if (!net || !is_pointed(net)) return NULL;
    int failed = 0;
    sf_update u = {.samples = whole(args[1], 1, MOST, "samples", &failed)};
    if (failed) return NULL;
    const Py_ssize_t each = u.samples * (Py_ssize_t)sizeof(float);
    u.features = sf_memory(args[2], each * net->inputs, 0, "features");
    u.action = u.features ? sf_memory(args[3], u.samples * action_bytes(net), 0, "action") : NULL;
    u.mask = u.action ? optional(args[4], u.samples * net->outputs, 0, "mask", &failed) : NULL;
    float *log_prob = u.action && !failed ? sf_memory(args[5], each, 1, "log_prob") : NULL;
    if (!log_prob || !choices_fit(net, &u)) return NULL;
    u.log_prob = u.value = u.advantage = u.target = u.features; /* what only the loss reads may be anything */
    int64_t *order = malloc(u.samples * sizeof(int64_t));
    if (!order) return PyErr_NoMemory();
    for (int64_t i = 0; i < u.samples; i++) order[i] = i;
    u.order = order;
    Py_BEGIN_ALLOW_THREADS
    net->ops->log_probs(net, &u, log_prob);
    Py_END_ALLOW_THREADS
    free(order);
    Py_RETURN_NONE;
}

/* gae(T, N, reward, value, next_value, terminated, truncated, valid, gamma, lam, advantage, target) */
static PyObject *gae(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 12, "gae")) return NULL;
    int failed = 0;
    const Py_ssize_t steps = whole(args[0], 0, MOST, "T", &failed);
    const Py_ssize_t streams = failed ? 0 : whole(args[1], 0, MOST / 8, "N", &failed);
    if (failed) return NULL;
    const float gamma = (float)PyFloat_AsDouble(args[8]);
    const float carry = (float)(PyFloat_AsDouble(args[8]) * PyFloat_AsDouble(args[9]));
    if (PyErr_Occurred()) return NULL;
    const Py_ssize_t flags = steps * streams, bytes = flags * (Py_ssize_t)sizeof(float);
    const float *reward = sf_memory(args[2], bytes, 0, "reward");
    const float *value = reward ? sf_memory(args[3], bytes, 0, "value") : NULL;
    const float *next_value = value ? sf_memory(args[4], bytes, 0, "next_value") : NULL;
    const uint8_t *terminated = next_value ? sf_memory(args[5], flags, 0, "terminated") : NULL;
    const uint8_t *truncated = terminated ? sf_memory(args[6], flags, 0, "truncated") : NULL;
    const uint8_t *valid = truncated ? sf_memory(args[7], flags, 0, "valid") : NULL;
    float *advantage = valid ? sf_memory(args[10], bytes, 1, "advantage") : NULL;
    float *target = advantage ? sf_memory(args[11], bytes, 1, "target") : NULL;
    if (!target) return NULL;
    for (Py_ssize_t t = steps - 1; t >= 0; t--)
        for (Py_ssize_t n = 0; n < streams; n++) {
            const Py_ssize_t i = t * streams + n;
            const float after = t + 1 < steps ? advantage[i + streams] : 0.0f;
            float a = reward[i] + (terminated[i] ? 0.0f : gamma * next_value[i]) - value[i];
            if (!terminated[i] && !truncated[i]) a += carry * after;
            advantage[i] = valid[i] ? a : 0.0f;
            target[i] = advantage[i] + value[i];
        }
    Py_RETURN_NONE;
}

/* describe(n, reward, value, target) → mean and std of advantages, their correlation with rewards, explained variance,
 * reward mean and std, value mean, target mean and std. */
static PyObject *describe(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 4, "describe")) return NULL;
    int failed = 0;
    const Py_ssize_t n = whole(args[0], 1, MOST, "n", &failed);
    if (failed) return NULL;
    const Py_ssize_t bytes = n * (Py_ssize_t)sizeof(float);
    const float *reward = sf_memory(args[1], bytes, 0, "reward");
    const float *value = reward ? sf_memory(args[2], bytes, 0, "value") : NULL;
    const float *target = value ? sf_memory(args[3], bytes, 0, "target") : NULL;
    if (!target) return NULL;
    double r = 0, v = 0, t = 0, rr = 0, tt = 0, aa = 0, ra = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        r += reward[i];
        v += value[i];
        t += target[i];
    }
    r /= n;
    v /= n;
    t /= n;
    const double a = t - v;
    for (Py_ssize_t i = 0; i < n; i++) {
        const double dr = reward[i] - r, dt = target[i] - t, da = (double)target[i] - value[i] - a;
        rr += dr * dr;
        tt += dt * dt;
        aa += da * da;
        ra += dr * da;
    }
    rr = sqrt(rr / n);
    tt = sqrt(tt / n);
    aa = sqrt(aa / n);
    const double scale = rr * aa, bent = scale > 1e-12 ? ra / n / scale : 0.0;
    return Py_BuildValue("(ddddddddd)", a, aa, bent < -1 ? -1 : bent > 1 ? 1 : bent, tt > 1e-12 ? 1 - aa / tt * (aa / tt) : 0.0,
                         r, rr, v, t, tt);
}

/* ---- a rollout being written ---- */

static void forget_tape(PyObject *capsule) { free(tape_of(capsule)); }

/* tape_new(net, T, N, obs, mask, action, env_action, log_prob, value, next_value, reward, terminated, truncated, start,
 * valid): the memory of one rollout, which the caller keeps alive. obs is None where the caller stores it itself. */
static PyObject *tape_new(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 15, "tape_new")) return NULL;
    sf_net *net = net_of(args[0]);
    if (!net) return NULL;
    int failed = 0;
    const Py_ssize_t steps = whole(args[1], 1, MOST, "steps", &failed);
    const Py_ssize_t streams = failed ? 0 : whole(args[2], 1, 1 << 24, "streams", &failed);
    if (failed) return NULL;
    const Py_ssize_t each = (net->inputs + net->outputs) * (Py_ssize_t)sizeof(double), all = steps * streams;
    if (all > PY_SSIZE_T_MAX / each) return PyErr_NoMemory();
    const Py_ssize_t floats = all * (Py_ssize_t)sizeof(float);
    sf_tape tape = {.steps = (int)steps, .streams = (int)streams, .inputs = net->inputs, .outputs = net->outputs};
    tape.head = net->head;
    tape.action_bytes = action_bytes(net);
    tape.obs = optional(args[3], floats * net->inputs, 1, "obs", &failed);
    tape.mask = failed ? NULL : optional(args[4], all * net->outputs, 1, "mask", &failed);
    if (failed) return NULL;
    struct {
        void *to;
        Py_ssize_t bytes;
        const char *name;
    } parts[] = {{&tape.action, all * action_bytes(net), "action"},
                 {&tape.env_action, all * action_bytes(net), "env_action"},
                 {&tape.log_prob, floats, "log_prob"},
                 {&tape.value, floats, "value"},
                 {&tape.next_value, floats, "next_value"},
                 {&tape.reward, all * (Py_ssize_t)sizeof(double), "reward"},
                 {&tape.terminated, all, "terminated"},
                 {&tape.truncated, all, "truncated"},
                 {&tape.start, all, "start"},
                 {&tape.valid, all, "valid"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        void *memory = sf_memory(args[5 + i], parts[i].bytes, 1, parts[i].name);
        if (!memory) return NULL;
        memcpy(parts[i].to, &memory, sizeof memory);
    }
    sf_tape *kept = malloc(sizeof *kept);
    if (!kept) return PyErr_NoMemory();
    *kept = tape;
    PyObject *capsule = PyCapsule_New(kept, TAPE, forget_tape);
    if (!capsule) free(kept);
    return capsule;
}

/* True if this rollout's memory is laid out for this network. */
static int fits(const sf_net *net, const sf_tape *tape) {
    if (tape->inputs == net->inputs && tape->outputs == net->outputs && tape->head == net->head &&
        tape->action_bytes == action_bytes(net))
        return 1;
    PyErr_SetString(PyExc_ValueError, "the rollout was made for another network");
    return 0;
}

/* True if values can wait for the end of the rollout, where many rows at once cost less than a few at a time. A row's value
 * does not depend on the rows beside it, so that its digits are the same. */
static int values_wait(const sf_net *net, const sf_tape *tape) { return tape->obs && !net->shared; }

static void write_act(sf_net *net, sf_rng *rng, sf_tape *tape, int64_t t, const float *obs, const uint8_t *mask) {
    const int64_t n = tape->streams, at = t * n;
    if (tape->obs) memcpy(tape->obs + at * net->inputs, obs, n * net->inputs * sizeof(float));
    if (tape->mask) memcpy(tape->mask + at * net->outputs, mask, n * net->outputs);
    net->ops->act(net, rng, (int)n, obs, mask, 0, (char *)tape->action + at * action_bytes(net),
                  (char *)tape->env_action + at * action_bytes(net), tape->log_prob + at,
                  values_wait(net, tape) ? NULL : tape->value + at);
}

/* tape_act(net, rng, tape, t, obs, mask): choose for all streams and write it down as step t. */
static PyObject *tape_act(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 6, "tape_act")) return NULL;
    sf_net *net = net_of(args[0]);
    sf_tape *tape = net ? tape_of(args[2]) : NULL;
    if (!tape || !is_pointed(net) || !fits(net, tape)) return NULL;
    sf_rng *rng = sf_memory(args[1], sizeof *rng, 1, "rng");
    if (!rng) return NULL;
    const Py_ssize_t t = PyLong_AsSsize_t(args[3]);
    if (PyErr_Occurred()) return NULL;
    if (t < 0 || t >= tape->steps) {
        PyErr_Format(PyExc_IndexError, "step %zd of a rollout of %d", t, tape->steps);
        return NULL;
    }
    int failed = 0;
    const float *obs = sf_memory(args[4], (Py_ssize_t)tape->streams * net->inputs * (Py_ssize_t)sizeof(float), 0, "obs");
    if (!obs) return NULL;
    const uint8_t *mask = optional(args[5], (Py_ssize_t)tape->streams * net->outputs, 0, "mask", &failed);
    if (failed) return NULL;
    if (!mask != !tape->mask) {
        PyErr_SetString(PyExc_ValueError, "a rollout has masks at every step or at none");
        return NULL;
    }
    write_act(net, rng, tape, t, obs, mask);
    Py_RETURN_NONE;
}

static int all_finite(const float *x, int64_t n) {
    float sum = 0.0f; /* x - x is 0, or NaN for what is not finite */
    for (int64_t i = 0; i < n; i++) sum += x[i] - x[i];
    return sum == 0.0f;
}

enum { NOTE_ENDED = 1, NOTE_STRANGE = 2 };

/* tape_note(tape, t, obs, reward, terminated, truncated, valid, returns, lengths) → 0 if the step is written down and
 * nothing else is to be done; 1 if it is written and an episode ended; 2 if it holds a number that is not finite, and
 * was not written. `obs` is what is seen next (None if the caller looked at it). */
static PyObject *tape_note(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 9, "tape_note")) return NULL;
    sf_tape *tape = tape_of(args[0]);
    if (!tape) return NULL;
    const Py_ssize_t t = PyLong_AsSsize_t(args[1]), n = tape->streams;
    if (PyErr_Occurred()) return NULL;
    if (t < 0 || t >= tape->steps) {
        PyErr_Format(PyExc_IndexError, "step %zd of a rollout of %d", t, tape->steps);
        return NULL;
    }
    if (args[2] != Py_None) {
        Py_buffer view;
        if (PyObject_GetBuffer(args[2], &view, PyBUF_SIMPLE) < 0) return NULL;
        const int fine = all_finite(view.buf, view.len / (Py_ssize_t)sizeof(float));
        PyBuffer_Release(&view);
        if (!fine) return PyLong_FromLong(NOTE_STRANGE);
    }
    const double *reward = sf_memory(args[3], n * (Py_ssize_t)sizeof(double), 0, "reward");
    const uint8_t *terminated = reward ? sf_memory(args[4], n, 0, "terminated") : NULL;
    const uint8_t *truncated = terminated ? sf_memory(args[5], n, 0, "truncated") : NULL;
    const uint8_t *valid = truncated ? sf_memory(args[6], n, 0, "valid") : NULL;
    double *returns = valid ? sf_memory(args[7], n * (Py_ssize_t)sizeof(double), 1, "returns") : NULL;
    int64_t *lengths = returns ? sf_memory(args[8], n * (Py_ssize_t)sizeof(int64_t), 1, "lengths") : NULL;
    if (!lengths) return NULL;
    int ended = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!(fabs(reward[i]) <= 3.4028234663852886e38)) return PyLong_FromLong(NOTE_STRANGE);
        ended |= terminated[i] | truncated[i];
    }
    const Py_ssize_t at = t * n;
    memcpy(tape->reward + at, reward, n * sizeof(double));
    memcpy(tape->terminated + at, terminated, n);
    memcpy(tape->truncated + at, truncated, n);
    memcpy(tape->valid + at, valid, n);
    for (Py_ssize_t i = 0; i < n; i++) {
        /* A row that is not valid drops a running episode: its worker was lost. */
        returns[i] = valid[i] ? returns[i] + reward[i] : 0.0;
        lengths[i] = valid[i] ? lengths[i] + 1 : 0;
    }
    if (t + 1 < tape->steps)
        for (Py_ssize_t i = 0; i < n; i++) tape->start[at + n + i] = terminated[i] | truncated[i] | !valid[i];
    return PyLong_FromLong(ended ? NOTE_ENDED : 0);
}

#define MOST_ROWS (1 << 20) /* in one call, whose count is an int */

static void fill_next_values(sf_net *net, sf_tape *tape, const float *obs) {
    const int64_t n = tape->streams, last = (int64_t)(tape->steps - 1) * n;
    for (int64_t t = 0; values_wait(net, tape) && t < tape->steps; t += MOST_ROWS / n + 1) {
        const int64_t some = tape->steps - t < MOST_ROWS / n + 1 ? tape->steps - t : MOST_ROWS / n + 1;
        net->ops->values(net, (int)(some * n), tape->obs + t * n * net->inputs, tape->value + t * n);
    }
    float *ahead = tape->next_value + last;
    /* What was cut short has its value already; the others of the last row get theirs from what is seen now. */
    for (int64_t begin = 0; begin < n; begin += net->rows) {
        float now[ROWS];
        const int some = (int)(n - begin < net->rows ? n - begin : net->rows);
        net->ops->values(net, some, obs + begin * net->inputs, now);
        for (int i = 0; i < some; i++)
            if (!tape->truncated[last + begin + i]) ahead[begin + i] = now[i];
    }
    for (int64_t i = 0; i < last; i++)
        if (!tape->truncated[i]) tape->next_value[i] = tape->value[i + n];
}

/* tape_finish(net, tape, obs): values that waited, and next_value of every step that was not cut short. */
static PyObject *tape_finish(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 3, "tape_finish")) return NULL;
    sf_net *net = net_of(args[0]);
    sf_tape *tape = net ? tape_of(args[1]) : NULL;
    if (!tape || !is_pointed(net) || !fits(net, tape)) return NULL;
    const float *obs = sf_memory(args[2], (Py_ssize_t)tape->streams * net->inputs * (Py_ssize_t)sizeof(float), 0, "obs");
    if (!obs) return NULL;
    fill_next_values(net, tape, obs);
    Py_RETURN_NONE;
}

static double clock_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int acts_in(const sf_net *net, const surefoot_env *env) {
    if (net->head != SF_CATEGORICAL) return !env->choices && env->action_size == net->outputs;
    return net->choices == 1 && net->sizes[0] == env->choices && net->first_option == 0;
}

/* tape_collect(net, rng, tape, streams, obs, start, returns, lengths, ended) → (how many episodes ended, or -1 - t if step t
 * held a number that is not finite; seconds spent in the world). A whole rollout of a native world: `obs` and `start` are what the streams see before
 * and after; `ended` [T·N][4] float64 gets (stream, return, length, truncated) of each episode. */
static PyObject *tape_collect(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 9, "tape_collect")) return NULL;
    sf_net *net = net_of(args[0]);
    sf_tape *tape = net ? tape_of(args[2]) : NULL;
    if (!tape || !is_pointed(net) || !fits(net, tape)) return NULL;
    sf_streams *streams = PyCapsule_GetPointer(args[3], SF_STREAMS_CAPSULE);
    if (!streams) return NULL;
    const Py_ssize_t n = tape->streams, seen = n * (Py_ssize_t)sizeof(float) * net->inputs;
    if (streams->n != n || streams->env->obs_size != net->inputs || !acts_in(net, streams->env) || tape->mask || !tape->obs) {
        PyErr_SetString(PyExc_ValueError, "the world, the network and the rollout do not fit each other");
        return NULL;
    }
    sf_rng *rng = sf_memory(args[1], sizeof *rng, 1, "rng");
    float *obs = rng ? sf_memory(args[4], seen, 1, "obs") : NULL;
    uint8_t *start = obs ? sf_memory(args[5], n, 1, "start") : NULL;
    double *returns = start ? sf_memory(args[6], n * (Py_ssize_t)sizeof(double), 1, "returns") : NULL;
    int64_t *lengths = returns ? sf_memory(args[7], n * (Py_ssize_t)sizeof(int64_t), 1, "lengths") : NULL;
    double *log = lengths ? sf_memory(args[8], (Py_ssize_t)tape->steps * n * 4 * (Py_ssize_t)sizeof(double), 1, "ended") : NULL;
    if (!log) return NULL;
    float *final_obs = malloc(seen);
    if (!final_obs) return PyErr_NoMemory();
    long episodes = 0, bad = -1;
    double in_world = 0.0;
    Py_BEGIN_ALLOW_THREADS
    for (int64_t t = 0; t < tape->steps && bad < 0; t++) {
        const int64_t at = t * n;
        memcpy(tape->start + at, start, n);
        write_act(net, rng, tape, t, obs, NULL);
        const double before = clock_now();
        const int ended = sf_streams_step(streams, (char *)tape->env_action + at * action_bytes(net), obs, tape->reward + at,
                                          tape->terminated + at, tape->truncated + at, final_obs);
        in_world += clock_now() - before;
        int fine = all_finite(obs, n * net->inputs) && (!ended || all_finite(final_obs, n * net->inputs));
        for (int64_t i = 0; i < n; i++) {
            fine &= fabs(tape->reward[at + i]) <= 3.4028234663852886e38;
            returns[i] += tape->reward[at + i];
            lengths[i] += 1;
            start[i] = 0;
        }
        if (!fine) bad = (long)t;
        for (int64_t i = 0; ended && i < n; i++) {
            if (!tape->terminated[at + i] && !tape->truncated[at + i]) continue;
            if (tape->truncated[at + i])
                net->ops->values(net, 1, final_obs + i * net->inputs, tape->next_value + at + i);
            const double entry[4] = {(double)i, returns[i], (double)lengths[i], tape->truncated[at + i]};
            memcpy(log + 4 * episodes++, entry, sizeof entry);
            returns[i] = 0.0;
            lengths[i] = 0;
            start[i] = 1;
        }
    }
    if (bad < 0) {
        memset(tape->valid, 1, (size_t)tape->steps * n);
        fill_next_values(net, tape, obs);
    }
    Py_END_ALLOW_THREADS
    free(final_obs);
    return Py_BuildValue("(ld)", bad < 0 ? episodes : -1 - bad, in_world);
}

/* ---- what tests look at ---- */

/* function(instruction_set, which, n, x, y) */
static PyObject *function(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 5, "function")) return NULL;
    const sf_ops *ops = sf_ops_of(args[0]);
    if (!ops) return NULL;
    int failed = 0;
    const int which = (int)whole(args[1], 0, 8, "which", &failed);
    const Py_ssize_t n = failed ? 0 : whole(args[2], 0, MOST, "n", &failed);
    if (failed) return NULL;
    const float *x = sf_memory(args[3], n * (Py_ssize_t)sizeof(float), 0, "x");
    float *y = x ? sf_memory(args[4], n * (Py_ssize_t)sizeof(float), 1, "y") : NULL;
    if (!y) return NULL;
    ops->function(which, (int)n, x, y);
    Py_RETURN_NONE;
}

/* multiply(instruction_set, m, n, k, a, b, c): c = a·b, all by rows. */
static PyObject *multiply(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!count_is(count, 7, "multiply")) return NULL;
    const sf_ops *ops = sf_ops_of(args[0]);
    if (!ops) return NULL;
    int failed = 0;
    Py_ssize_t size[3];
    for (int i = 0; i < 3 && !failed; i++) size[i] = whole(args[1 + i], 1, 1 << 24, "m, n or k", &failed);
    if (failed) return NULL;
    const Py_ssize_t m = size[0], n = size[1], k = size[2];
    const Py_ssize_t each = sizeof(float);
    const float *a = sf_memory(args[4], m * k * each, 0, "a");
    const float *b = a ? sf_memory(args[5], k * n * each, 0, "b") : NULL;
    float *c = b ? sf_memory(args[6], m * n * each, 1, "c") : NULL;
    if (!c) return NULL;
    ops->multiply((int)m, (int)n, (int)k, a, b, c);
    Py_RETURN_NONE;
}

#define FAST(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
PyMethodDef sf_net_methods[] = {{"instruction_sets", instruction_sets, METH_NOARGS, NULL},
                                FAST(net_new),
                                {"net_sizes", net_sizes, METH_O, NULL},
                                FAST(net_point),
                                {"net_pack", net_pack, METH_O, NULL},
                                FAST(net_act),
                                FAST(net_values),
                                {"net_keep", net_keep, METH_O, NULL},
                                {"net_restore", net_restore, METH_O, NULL},
                                FAST(net_learn),
                                FAST(net_log_probs),
                                FAST(gae),
                                FAST(describe),
                                FAST(tape_new),
                                FAST(tape_act),
                                FAST(tape_note),
                                FAST(tape_finish),
                                FAST(tape_collect),
                                FAST(function),
                                FAST(multiply),
                                {NULL, NULL, 0, NULL}};
