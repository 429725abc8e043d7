/* Networks for Python: build one, give it the addresses of torch's tensors and its weights. */
#include "binding.h"
#include "network.h"

static void free_net(PyObject *capsule) { sf_net_free(PyCapsule_GetPointer(capsule, SF_NET_CAPSULE)); }

int sf_net_is_free(const sf_net *net) {
    if (!net->busy) return 1;
    PyErr_SetString(PyExc_RuntimeError, "the network is in use by another thread; a policy can serve one call at a time");
    return 0;
}

int sf_net_is_ready(const sf_net *net) {
    if (!sf_net_is_free(net)) return 0;
    if (net->tensor[0].value) return 1;
    PyErr_SetString(PyExc_ValueError, "net_point was not called: the network has no weights yet");
    return 0;
}

int sf_actions_are_options(const sf_net *net, const sf_update *u) {
    const int width = sf_action_width(net);
    for (int64_t i = 0; i < u->samples; i++)
        for (int c = 0; c < net->choices; c++) {
            const int64_t at = i * width + c;
            double action; /* a choice that is stored as a float can be NaN */
            if (net->numbers) action = ((const float *)u->action)[at];
            else action = (double)((const int64_t *)u->action)[at];
            if (action >= 0.0 && action < net->sizes[c]) continue;
            const long long shown = fabs(action) < 9e18 ? (long long)action : -1;
            PyErr_Format(PyExc_ValueError, "action %lld of sample %lld is none of %d options", shown, (long long)i, net->sizes[c]);
            return 0;
        }
    return 1;
}

static int spec_is_consistent(const sf_net_spec *spec) {
    const sf_ints *actor = &spec->actor_widths, *critic = &spec->critic_widths;
    const int same = actor->count == critic->count && !memcmp(actor->value, critic->value, actor->count * sizeof(int));
    const int has_numbers = spec->head != SF_CATEGORICAL;
    if ((spec->sizes.count || has_numbers) && has_numbers == (spec->numbers > 0) && (!spec->shared || (same && !spec->critic_inputs)))
        return 1;
    PyErr_SetString(PyExc_ValueError, "sizes, numbers, inputs or widths do not fit the head or a shared trunk");
    return 0;
}

static PyObject *net_new(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    SF_CALL(call);
    sf_net_spec spec = {0};
    if (!sf_begin(&call, "net_new", args, count, names, 0)) return NULL;
    if (!sf_read(&call, TEXT(spec, instruction_set), INT(spec, inputs, 1, 1 << 20), INT(spec, critic_inputs, 0, 1 << 20),
                 INTS(spec, actor_widths, 1, 1 << 16, SF_MAX_DEPTH), INTS(spec, critic_widths, 1, 1 << 16, SF_MAX_DEPTH),
                 INT(spec, shared, 0, 1), NAME(spec, activation, sf_activation_names), NAME(spec, head, sf_head_names),
                 INTS(spec, sizes, 1, 1 << 16, SF_MAX_CHOICES), INT(spec, numbers, 0, 1 << 15), LONG(spec, first_option, INT64_MIN / 2, INT64_MAX / 2),
                 FLOAT(spec, log_std_low), FLOAT(spec, log_std_high),
                 INT(spec, noise_every, 0, 1 << 30), NAME(spec, memory, sf_memory_names), INT(spec, memory_size, 1, 1 << 14)))
        return NULL;
    if (!spec_is_consistent(&spec)) return NULL;
    if (!spec.numbers ? !sf_read(&call, INPUT_OR_NONE(spec, low, SF_F32, 0), INPUT_OR_NONE(spec, high, SF_F32, 0))
                    : !sf_read(&call, INPUT(spec, low, SF_F32, spec.numbers), INPUT(spec, high, SF_F32, spec.numbers)))
        return NULL;
    const sf_ops *ops = sf_end(&call) ? sf_ops_named(spec.instruction_set) : NULL;
    if (!ops) return NULL;
    sf_net *net = sf_net_new(&spec, ops);
    if (!net) return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(net, SF_NET_CAPSULE, free_net);
    if (!capsule) sf_net_free(net);
    return capsule;
}

/* net_sizes(net) → how many numbers each tensor has, in the kernel's order. */
static PyObject *net_sizes(PyObject *self, PyObject *capsule) {
    const sf_net *net = PyCapsule_GetPointer(capsule, SF_NET_CAPSULE);
    PyObject *sizes = net ? PyTuple_New(net->tensors) : NULL;
    for (int t = 0; sizes && t < net->tensors; t++) {
        PyObject *size = PyLong_FromLongLong(net->tensor[t].size);
        if (!size || PyTuple_SetItem(sizes, t, size) < 0) Py_CLEAR(sizes);
    }
    return sizes;
}

/* net_point(net, addresses uint64 [tensors][4], shift, scale, critic_shift, critic_scale, obs_clip): the addresses of each
 * parameter, its two optimizer slots and its step (0 for none), and of the two rows of the normaliser (0 for none) and of that of
 * a critic that sees something else. */
static PyObject *net_point(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    struct {
        sf_net *net;
        const uint64_t *addresses;
        const float *shift, *scale, *critic_shift, *critic_scale;
        float obs_clip;
    } in = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "net_point", args, count, NULL, 7) || !sf_read(&call, CAPSULE(in, net, SF_NET_CAPSULE))) return NULL;
    sf_net *net = in.net;
    if (!sf_net_is_free(net)) return NULL;
    if (!sf_read(&call, INPUT(in, addresses, SF_U64, net->tensors * 4), ADDRESS(in, shift), ADDRESS(in, scale),
                 ADDRESS(in, critic_shift), ADDRESS(in, critic_scale), FLOAT(in, obs_clip)))
        return NULL;
    if (!in.shift != !in.scale || !in.critic_shift != !in.critic_scale) {
        PyErr_SetString(PyExc_ValueError, "a normaliser has both shift and scale, or neither");
        return NULL;
    }
    for (int t = 0; t < net->tensors; t++)
        if (!in.addresses[4 * t]) return PyErr_Format(PyExc_ValueError, "tensor %d has no address", t);
    for (int t = 0; t < net->tensors; t++) {
        const uint64_t *address = in.addresses + 4 * t;
        sf_tensor *tensor = &net->tensor[t];
        /* The snapshot is contiguous: with other slots than it was taken with it would go back to the wrong places. */
        if (!tensor->first != !address[1] || !tensor->second != !address[2] || !tensor->step != !address[3])
            net->has_snapshot = 0;
        tensor->value = (float *)(uintptr_t)address[0];
        tensor->first = (float *)(uintptr_t)address[1];
        tensor->second = (float *)(uintptr_t)address[2];
        tensor->step = (float *)(uintptr_t)address[3];
    }
    const float *const shifts[2] = {in.shift, in.critic_shift}, *const scales[2] = {in.scale, in.critic_scale};
    for (int v = 0; v < net->views; v++) {
        net->view[v].shift = shifts[v];
        net->view[v].scale = scales[v];
        net->view[v].clip = in.obs_clip;
    }
    Py_RETURN_NONE;
}

/* net_pack(net): copy the current weights for acting, which uses them until the next call. */
static PyObject *net_pack(PyObject *self, PyObject *capsule) {
    sf_net *net = PyCapsule_GetPointer(capsule, SF_NET_CAPSULE);
    if (!net || !sf_net_is_ready(net)) return NULL;
    net->ops->pack(net, 0);
    Py_RETURN_NONE;
}

/* net_temperature(net, temperature): divide the logits by it from now on. */
static PyObject *net_temperature(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    struct {
        sf_net *net;
        float temperature;
    } in = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "net_temperature", args, count, NULL, 2) || !sf_read(&call, CAPSULE(in, net, SF_NET_CAPSULE)) ||
        !sf_net_is_free(in.net) || !sf_read(&call, FLOAT(in, temperature)))
        return NULL;
    in.net->temperature = in.temperature;
    Py_RETURN_NONE;
}

/* True if the container, a dict or a list, holds exactly these objects in this order; `...` stands for any. */
static int holds_items(PyObject *container, PyObject *items) {
    const Py_ssize_t count = PyTuple_Size(items);
    PyObject *key, *value;
    Py_ssize_t at = 0, position = 0;
    if (PyList_Check(container)) {
        if (PyList_Size(container) != count) return 0;
        while (at < count && PyList_GetItem(container, at) == PyTuple_GetItem(items, at)) at++;
        return at == count;
    }
    if (!PyDict_Check(container) || PyDict_Size(container) != count) return 0;
    for (; PyDict_Next(container, &position, &key, &value); at++) {
        PyObject *item = at < count ? PyTuple_GetItem(items, at) : NULL;
        if (item != value && item != Py_Ellipsis) return 0;
    }
    return at == count;
}

/* holds(containers, items) → bool: True if each container of the first tuple still holds the objects in its tuple of the second.
 * The same loop in Python takes longer than a small update may lose. */
static PyObject *holds(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]) || PyTuple_Size(args[0]) != PyTuple_Size(args[1])) {
        PyErr_SetString(PyExc_TypeError, "holds takes two tuples of one length");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(args[0]); i++) {
        PyObject *items = PyTuple_GetItem(args[1], i);
        if (!PyTuple_Check(items)) return PyErr_Format(PyExc_TypeError, "items of container %zd are not a tuple", i);
        if (!holds_items(PyTuple_GetItem(args[0], i), items)) Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

PyMethodDef sf_net_methods[] = {SF_KEYWORDS(net_new),
                                {"net_sizes", net_sizes, METH_O, NULL},
                                SF_POSITIONAL(net_point),
                                {"net_pack", net_pack, METH_O, NULL},
                                SF_POSITIONAL(net_temperature),
                                SF_POSITIONAL(holds),
                                {NULL, NULL, 0, NULL}};
