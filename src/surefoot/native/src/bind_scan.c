/* Memory over time for Python: a GRU's or an LSTM's steps, and their gradients. */
#include "binding.h"
#include "kernel.h"

#define MOST_STEPS (1 << 20)
#define MOST_INPUTS (1 << 20)
#define MOST_STREAMS (1 << 20)
#define LARGEST (1 << 14) /* all of them together leave room: no size in bytes overflows */

/* One buffer of a call: where it goes, how many floats it must have, and whether it may be None. */
typedef struct {
    const char *name;
    int64_t floats;
    void *to;
    int writable, may_be_none;
} part;

static int take(PyObject *const *args, const part *parts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int failed = 0;
        void *memory = NULL;
        const Py_ssize_t bytes = (Py_ssize_t)(parts[i].floats * (int64_t)sizeof(float));
        if (parts[i].may_be_none) memory = optional(args[i], bytes, parts[i].writable, parts[i].name, &failed);
        else failed = !(memory = sf_memory(args[i], bytes, parts[i].writable, parts[i].name));
        if (failed) return 0;
        memcpy(parts[i].to, &memory, sizeof memory);
    }
    return 1;
}

/* The arguments that both have first: instruction_set, gates (3 of a GRU, 4 of an LSTM), T, N, size, start. */
static const sf_ops *shape(PyObject *const *args, sf_scan *scan) {
    const sf_ops *ops = sf_ops_of(args[0]);
    int failed = !ops;
    if (!failed) scan->gates_of = (int)whole(args[1], 3, 4, "gates", &failed);
    if (!failed) scan->steps = (int)whole(args[2], 1, MOST_STEPS, "T", &failed);
    if (!failed) scan->streams = (int)whole(args[3], 1, MOST_STREAMS, "N", &failed);
    if (!failed) scan->size = (int)whole(args[4], 1, LARGEST, "size", &failed);
    if (!failed) scan->start = optional(args[5], (Py_ssize_t)scan->steps * scan->streams, 0, "start", &failed);
    return failed ? NULL : ops;
}

#define HEAD 6

/* scan_forward(instruction_set, gates, T, N, size, start, inward, carry, weight, bias, hidden, carried, kept_gates, kept):
 * the last two are None where there will be no backward. */
static PyObject *scan_forward(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    sf_scan scan = {0};
    const sf_ops *ops = count_is(count, HEAD + 8, "scan_forward") ? shape(args, &scan) : NULL;
    if (!ops) return NULL;
    const int64_t size = scan.size, width = scan.gates_of * size, rows = (int64_t)scan.steps * scan.streams;
    const int64_t carried = scan.streams * (scan.gates_of == 4 ? 2 * size : size);
    const part parts[] = {{"inward", rows * width, &scan.inward, 0, 0}, {"carry", carried, &scan.carry, 0, 0},
                          {"weight", width * size, &scan.weight, 0, 0}, {"bias", width, &scan.bias, 0, 0},
                          {"hidden", rows * size, &scan.hidden, 1, 0},  {"carried", carried, &scan.carried, 1, 0},
                          {"gates", rows * width, &scan.gates, 1, 1},   {"kept", rows * size, &scan.kept, 1, 1}};
    if (!take(args + HEAD, parts, sizeof parts / sizeof *parts)) return NULL;
    if (!scan.gates != !scan.kept) {
        PyErr_SetString(PyExc_ValueError, "gates and kept are both there, for a backward to come, or both None");
        return NULL;
    }
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = ops->scan_forward(&scan);
    Py_END_ALLOW_THREADS
    if (!done) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* scan_step(instruction_set, gates, inputs, N, size, start, x, weight_in, bias_in, carry, weight, bias, hidden, carried):
 * one step of N streams from its input on, for acting. */
static PyObject *scan_step(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    sf_scan scan = {0};
    if (!count_is(count, HEAD + 8, "scan_step")) return NULL;
    int failed = 0;
    scan.inputs = (int)whole(args[2], 1, MOST_INPUTS, "inputs", &failed);
    PyObject *one = failed ? NULL : PyLong_FromLong(1);
    if (!one) return NULL;
    PyObject *const head[HEAD] = {args[0], args[1], one, args[3], args[4], args[5]};
    const sf_ops *ops = shape(head, &scan);
    Py_DECREF(one);
    if (!ops) return NULL;
    const int64_t size = scan.size, width = scan.gates_of * size, rows = scan.streams, inputs = scan.inputs;
    const int64_t carried = rows * (scan.gates_of == 4 ? 2 * size : size);
    const part parts[] = {{"x", rows * inputs, &scan.x, 0, 0},          {"weight_in", width * inputs, &scan.weight_in, 0, 0},
                          {"bias_in", width, &scan.bias_in, 0, 0},      {"carry", carried, &scan.carry, 0, 0},
                          {"weight", width * size, &scan.weight, 0, 0}, {"bias", width, &scan.bias, 0, 0},
                          {"hidden", rows * size, &scan.hidden, 1, 0},  {"carried", carried, &scan.carried, 1, 0}};
    if (!take(args + HEAD, parts, sizeof parts / sizeof *parts)) return NULL;
    if (!ops->scan_forward(&scan)) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* scan_backward(instruction_set, gates, T, N, size, start, carry, weight, hidden, kept_gates, kept, d_hidden, d_carried,
 * d_inward, d_onward, before, d_carry): gradients that are None are 0; d_onward is None for an LSTM. Σ d_onward beforeᵀ is
 * the gradient of the weight, Σ d_onward that of the bias. */
static PyObject *scan_backward(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    sf_scan scan = {0};
    const sf_ops *ops = count_is(count, HEAD + 11, "scan_backward") ? shape(args, &scan) : NULL;
    if (!ops) return NULL;
    const int64_t size = scan.size, width = scan.gates_of * size, rows = (int64_t)scan.steps * scan.streams;
    const int lstm = scan.gates_of == 4;
    const int64_t carried = scan.streams * (lstm ? 2 * size : size);
    const part parts[] = {{"carry", carried, &scan.carry, 0, 0},           {"weight", width * size, &scan.weight, 0, 0},
                          {"hidden", rows * size, &scan.hidden, 0, 0},     {"gates", rows * width, &scan.gates, 0, 0},
                          {"kept", rows * size, &scan.kept, 0, 0},         {"d_hidden", rows * size, &scan.d_hidden, 0, 1},
                          {"d_carried", carried, &scan.d_carried, 0, 1},   {"d_inward", rows * width, &scan.d_inward, 1, 0},
                          {"d_onward", rows * width, &scan.d_onward, 1, lstm}, {"before", rows * size, &scan.before, 1, 0},
                          {"d_carry", carried, &scan.d_carry, 1, 0}};
    if (!take(args + HEAD, parts, sizeof parts / sizeof *parts)) return NULL;
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = ops->scan_backward(&scan);
    Py_END_ALLOW_THREADS
    if (!done) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

#define FAST(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
PyMethodDef sf_scan_methods[] = {FAST(scan_forward), FAST(scan_step), FAST(scan_backward), {NULL, NULL, 0, NULL}};
