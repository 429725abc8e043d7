/* Questions to a network outside of rollouts: actions, values, log-probabilities. */
#include "binding.h"
#include "network.h"

/* net_act(net, *, rng uint64 [4], n, obs [n][inputs], mask [n][outputs] or None, deterministic, and the outputs [n][…]) */
static PyObject *net_act(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    struct {
        sf_net *net;
        sf_rng *rng;
        int n, deterministic;
        const float *obs;
        const uint8_t *mask;
        void *action, *env_action;
        float *log_prob, *value;
    } in = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "net_act", args, count, names, 1) || !sf_read(&call, CAPSULE(in, net, SF_NET_CAPSULE))) return NULL;
    if (!sf_net_is_ready(in.net) || !sf_read(&call, INT(in, n, 0, SF_MAX_ROWS))) return NULL;
    const int64_t n = in.n, width = sf_action_width(in.net);
    const sf_type type = in.net->head == SF_CATEGORICAL ? SF_I64 : SF_F32;
    if (!sf_read(&call, OUTPUT(in, rng, SF_U64, 4), INPUT(in, obs, SF_F32, n * in.net->inputs),
                 INPUT_OR_NONE(in, mask, SF_BOOL, n * in.net->outputs), INT(in, deterministic, 0, 1),
                 OUTPUT(in, action, type, n * width), OUTPUT(in, env_action, type, n * width), OUTPUT(in, log_prob, SF_F32, n),
                 OUTPUT(in, value, SF_F32, n)) ||
        !sf_end(&call))
        return NULL;
    in.net->ops->act(in.net, in.rng, in.n, in.obs, in.mask, in.deterministic, in.action, in.env_action, in.log_prob, in.value);
    Py_RETURN_NONE;
}

/* net_values(net, n, obs [n][inputs], value [n]) */
static PyObject *net_values(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    struct {
        sf_net *net;
        int n;
        const float *obs;
        float *value;
    } in = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "net_values", args, count, NULL, 4) || !sf_read(&call, CAPSULE(in, net, SF_NET_CAPSULE))) return NULL;
    if (!sf_net_is_ready(in.net) || !sf_read(&call, INT(in, n, 0, SF_MAX_ROWS))) return NULL;
    if (!sf_read(&call, INPUT(in, obs, SF_F32, (int64_t)in.n * in.net->inputs), OUTPUT(in, value, SF_F32, in.n))) return NULL;
    in.net->ops->values(in.net, in.n, in.obs, in.value);
    Py_RETURN_NONE;
}

/* net_log_probs(net, samples, features, action, mask, result [samples]): log π under the current weights. */
static PyObject *net_log_probs(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    struct {
        sf_net *net;
        float *result;
    } in = {0};
    sf_update u = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "net_log_probs", args, count, NULL, 6) || !sf_read(&call, CAPSULE(in, net, SF_NET_CAPSULE))) return NULL;
    sf_net *net = in.net;
    if (!sf_net_is_ready(net) || !sf_read(&call, LONG(u, samples, 1, SF_MAX_ROWS))) return NULL;
    const int64_t n = u.samples;
    const sf_type type = net->head == SF_CATEGORICAL ? SF_I64 : SF_F32;
    if (!sf_read(&call, INPUT(u, features, SF_F32, n * net->inputs), INPUT(u, action, type, n * sf_action_width(net)),
                 INPUT_OR_NONE(u, mask, SF_BOOL, n * net->outputs), OUTPUT(in, result, SF_F32, n)) ||
        !sf_actions_are_options(net, &u))
        return NULL;
    u.log_prob = u.value = u.advantage = u.target = u.features; /* only the loss reads them, and it is ignored */
    int64_t *order = malloc(n * sizeof *order);
    if (!order) return PyErr_NoMemory();
    for (int64_t i = 0; i < n; i++) order[i] = i;
    u.order = order;
    net->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    net->ops->log_probs(net, &u, in.result);
    Py_END_ALLOW_THREADS
    net->busy = 0;
    free(order);
    Py_RETURN_NONE;
}

PyMethodDef sf_act_methods[] = {
    SF_KEYWORDS(net_act), SF_POSITIONAL(net_values), SF_POSITIONAL(net_log_probs), {NULL, NULL, 0, NULL}};
