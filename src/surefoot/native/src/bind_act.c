/* Questions to a network outside of rollouts: actions, values, log-probabilities; and what memories need. */
#include "binding.h"
#include "network.h"

int sf_read_carry(sf_call *call, const sf_net *net, int64_t streams, float *carry[2]) {
    sf_field fields[2];
    for (int m = 0; m < 2; m++)
        fields[m] = (sf_field){.name = m ? "critic_carry" : "carry", .to = &carry[m], .kind = SF_OUTPUT, .type = SF_F32,
                               .count = streams * net->memory[m].carried, .optional = m >= net->memories};
    return sf_read_fields(call, fields, 2);
}

int sf_read_columns(sf_call *call, const sf_net *net, sf_update *u) {
    if (!sf_read(call, LONG(*u, length, 1, u->samples))) return 0;
    u->columns = u->samples / u->length;
    if (u->columns * u->length != u->samples) {
        PyErr_Format(PyExc_ValueError, "%lld samples are no columns of %lld steps", (long long)u->samples, (long long)u->length);
        return 0;
    }
    const int64_t numbers = u->columns * net->memory[0].carried;
    sf_field context[2] = {INPUT(*u, context[0], SF_F32, numbers), INPUT(*u, context[1], SF_F32, numbers)};
    context[0].name = "carry";
    context[1].name = "critic_carry";
    context[1].optional = net->memories == 1;
    return sf_read(call, INPUT(*u, start, SF_BOOL, u->samples), INPUT_OR_NONE(*u, valid, SF_BOOL, u->samples)) &&
           sf_read_fields(call, context, 2);
}

/* net_act(net, *, rng uint64 [4], n, obs [n][inputs], mask [n][options] or None, deterministic, the outputs [n][…], and
 * with memory start [n], carry and critic_carry [n][carried]) */
static PyObject *net_act(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
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
    const sf_type type = in.net->numbers ? SF_F32 : SF_I64;
    if (!sf_read(&call, OUTPUT(in, rng, SF_U64, 4), INPUT(in, obs, SF_F32, n * in.net->inputs),
                 INPUT_OR_NONE(in, mask, SF_BOOL, n * in.net->options), INT(in, deterministic, 0, 1),
                 OUTPUT(in, action, type, n * width), OUTPUT(in, env_action, type, n * width), OUTPUT(in, log_prob, SF_F32, n),
                 OUTPUT(in, value, SF_F32, n)) ||
        !sf_read(&call, INPUT_OR_NONE(*in.net, start, SF_BOOL, n)) || !sf_read_carry(&call, in.net, n, in.net->carry) ||
        !sf_end(&call))
        return NULL;
    in.net->ops->act(in.net, in.rng, in.n, in.obs, in.mask, in.deterministic, in.action, in.env_action, in.log_prob, in.value);
    Py_RETURN_NONE;
}

/* net_values(net, n, obs [n][inputs], carry [n][carried] or None, value [n]): `carry` is the state of the critic's memory, which stays
 * unchanged; None without memory. */
static PyObject *net_values(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    struct {
        sf_net *net;
        int n;
        const float *obs;
        float *carry, *value;
    } in = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "net_values", args, count, NULL, 5) || !sf_read(&call, CAPSULE(in, net, SF_NET_CAPSULE))) return NULL;
    if (!sf_net_is_ready(in.net) || !sf_read(&call, INT(in, n, 0, SF_MAX_ROWS))) return NULL;
    sf_field carry = INPUT(in, carry, SF_F32, (int64_t)in.n * in.net->memory[0].carried);
    carry.optional = !in.net->memories;
    if (!sf_read(&call, INPUT(in, obs, SF_F32, (int64_t)in.n * in.net->inputs)) || !sf_read_fields(&call, &carry, 1) ||
        !sf_read(&call, OUTPUT(in, value, SF_F32, in.n)))
        return NULL;
    in.net->carry[0] = in.net->carry[1] = in.carry;
    in.net->start = NULL;
    in.net->ops->values(in.net, in.n, in.obs, in.value);
    Py_RETURN_NONE;
}

/* net_log_probs(net, samples, features, action, mask, result [samples]): log π under the current weights. */
static PyObject *net_log_probs(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    struct {
        sf_net *net;
        float *result;
    } in = {0};
    sf_update u = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "net_log_probs", args, count, NULL, 6) || !sf_read(&call, CAPSULE(in, net, SF_NET_CAPSULE))) return NULL;
    sf_net *net = in.net;
    if (!sf_net_is_ready(net) || !sf_read(&call, LONG(u, samples, 1, SF_MAX_ROWS))) return NULL;
    if (net->memories) return PyErr_Format(PyExc_ValueError, "net_log_probs does not support networks with memory");
    const int64_t n = u.samples;
    const sf_type type = net->numbers ? SF_F32 : SF_I64;
    if (!sf_read(&call, INPUT(u, features, SF_F32, n * net->inputs), INPUT(u, action, type, n * sf_action_width(net)),
                 INPUT_OR_NONE(u, mask, SF_BOOL, n * net->options), OUTPUT(in, result, SF_F32, n)) ||
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
