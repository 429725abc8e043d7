/* Learning for Python: one update of a network, snapshots, advantages. */
#include "advantage.h"
#include "binding.h"
#include "network.h"

/* net_save(net) / net_restore(net): a snapshot of parameters and optimizer slots, and the way back. */
static PyObject *net_save(PyObject *self, PyObject *capsule) {
    sf_net *net = PyCapsule_GetPointer(capsule, SF_NET_CAPSULE);
    if (!net || !sf_net_is_ready(net)) return NULL;
    if (!sf_net_save(net)) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *net_restore(PyObject *self, PyObject *capsule) {
    sf_net *net = PyCapsule_GetPointer(capsule, SF_NET_CAPSULE);
    if (!net || !sf_net_is_ready(net)) return NULL;
    if (!net->has_snapshot) {
        PyErr_SetString(PyExc_ValueError, "net_save was not called: there is nothing to restore");
        return NULL;
    }
    sf_net_restore(net);
    Py_RETURN_NONE;
}

static int has_optimizer_slots(const sf_net *net, int optimizer) {
    for (int t = 0; t < net->tensors; t++) {
        const sf_tensor *tensor = &net->tensor[t];
        if (tensor->first && (optimizer == SF_SGD || (tensor->second && tensor->step))) continue;
        PyErr_SetString(PyExc_ValueError, "the optimizer's slots have no address");
        return 0;
    }
    return 1;
}

/* True if the minibatches partition each epoch and every index is that of a column. */
static int order_is_valid(const sf_update *u) {
    int64_t left = u->columns;
    int valid = 1;
    for (int b = 0; valid && b < u->minibatches; left -= u->sizes[b++]) valid = u->sizes[b] >= 1 && u->sizes[b] <= left;
    valid = valid && left == 0;
    for (int64_t i = 0; valid && i < u->columns * u->epochs; i++) valid = u->order[i] >= 0 && u->order[i] < u->columns;
    if (!valid) PyErr_SetString(PyExc_ValueError, "order or minibatch sizes point outside the batch");
    return valid;
}

/* net_learn(net, *, the members of sf_update down to `epoch_of`)
 * → (steps, stopped, bad_steps, bad_in_a_row, rolled_back, epochs_begun, first_ratio_error) */
static PyObject *net_learn(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    struct {
        sf_net *net;
    } in = {0};
    sf_update u = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "net_learn", args, count, names, 1) || !sf_read(&call, CAPSULE(in, net, SF_NET_CAPSULE))) return NULL;
    sf_net *net = in.net;
    if (!sf_net_is_ready(net)) return NULL;
    if (!sf_read(&call, LONG(u, samples, 1, SF_MAX_ROWS), INT(u, minibatches, 1, SF_MAX_ROWS), INT(u, epochs, 1, 1 << 20),
                 FLOAT(u, clip), FLOAT(u, value_clip), FLOAT(u, dual_clip), FLOAT(u, log_ratio_limit), FLOAT(u, vf_coef),
                 FLOAT(u, ent_coef), FLOAT(u, kl_coef), FLOAT(u, kl_limit), INT(u, standardize, 0, 1), FLOAT(u, max_grad_norm),
                 NAME(u, optimizer, sf_optimizer_names), DOUBLE(u, lr), DOUBLE(u, critic_lr_scale), DOUBLE(u, weight_decay), DOUBLE(u, eps),
                 DOUBLE(u, momentum), DOUBLE(u, beta1), DOUBLE(u, beta2), DOUBLE(u, alpha), INT(u, max_bad_steps, 1, SF_MAX_ROWS),
                 INT(u, bad_in_a_row, 0, SF_MAX_ROWS)))
        return NULL;
    u.columns = u.samples;
    u.length = 1;
    if (net->memories && !sf_read_columns(&call, net, &u)) return NULL;
    const int64_t n = u.samples, steps = (int64_t)u.epochs * u.minibatches;
    const sf_type type = net->numbers ? SF_F32 : SF_I64;
    if (!has_optimizer_slots(net, u.optimizer) ||
        !sf_read(&call, INPUT(u, features, SF_F32, n * net->inputs), INPUT(u, action, type, n * sf_action_width(net)),
                 INPUT(u, log_prob, SF_F32, n), INPUT(u, value, SF_F32, n), INPUT(u, advantage, SF_F32, n),
                 INPUT(u, target, SF_F32, n), INPUT_OR_NONE(u, ref_log_prob, SF_F32, n),
                 INPUT_OR_NONE(u, mask, SF_BOOL, n * net->options), INPUT(u, order, SF_I64, u.epochs * u.columns),
                 INPUT(u, sizes, SF_I64, u.minibatches), OUTPUT(u, table, SF_F64, steps * SF_COLUMNS),
                 OUTPUT(u, epoch_of, SF_I32, steps)) ||
        !sf_end(&call) || !sf_actions_are_options(net, &u) || !order_is_valid(&u))
        return NULL;
    net->busy = 1;
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = net->ops->learn(net, &u);
    Py_END_ALLOW_THREADS
    net->busy = 0;
    if (!done) return PyErr_NoMemory();
    return Py_BuildValue("(iiiiiid)", u.steps, u.stopped, u.bad_steps, u.bad_in_a_row, u.rolled_back, u.epochs_begun,
                         u.first_ratio_error);
}

/* gae(*, the members of sf_gae_arrays) */
static PyObject *gae(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sf_gae_arrays in = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "gae", args, count, names, 0) ||
        !sf_read(&call, LONG(in, steps, 0, SF_MAX_ROWS), LONG(in, streams, 0, SF_MAX_ROWS / 8), DOUBLE(in, gamma), DOUBLE(in, lam)))
        return NULL;
    const int64_t n = in.steps * in.streams;
    if (!sf_read(&call, INPUT(in, reward, SF_F32, n), INPUT(in, value, SF_F32, n), INPUT(in, next_value, SF_F32, n),
                 INPUT(in, terminated, SF_BOOL, n), INPUT(in, truncated, SF_BOOL, n), INPUT(in, valid, SF_BOOL, n),
                 OUTPUT(in, advantage, SF_F32, n), OUTPUT(in, target, SF_F32, n)) ||
        !sf_end(&call))
        return NULL;
    sf_gae(&in);
    Py_RETURN_NONE;
}

PyMethodDef sf_learn_methods[] = {{"net_save", net_save, METH_O, NULL},
                                  {"net_restore", net_restore, METH_O, NULL},
                                  SF_KEYWORDS(net_learn),
                                  SF_KEYWORDS(gae),
                                  {NULL, NULL, 0, NULL}};
