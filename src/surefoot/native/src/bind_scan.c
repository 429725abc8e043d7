/* Recurrent layers for Python: a GRU or an LSTM over time, and its gradients. */
#include "binding.h"
#include "network.h"
#include "scan.h"

/* Together they leave no size in bytes that overflows. */
#define MOST_STEPS (1 << 20)
#define MOST_STREAMS (1 << 20)
#define MOST_INPUTS (1 << 20)
#define LARGEST (1 << 14)

typedef struct {
    sf_call call;
    const char *instruction_set;
    const sf_ops *ops;
    sf_scan scan;
    int64_t size, width, rows, carried; /* units; gates · units; T · N; numbers carried over by all streams */
} scan_call;

/* Read the arguments that all three functions share. */
static int begin(scan_call *in, const char *function, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sf_scan *scan = &in->scan;
    *in = (scan_call){.scan = {.steps = 1}};
    if (!sf_begin(&in->call, function, args, count, names, 0) ||
        !sf_read(&in->call, TEXT(*in, instruction_set), INT(*scan, gates_per_unit, 3, 4), INT(*scan, streams, 1, MOST_STREAMS),
                 INT(*scan, size, 1, LARGEST)) ||
        !(in->ops = sf_ops_named(in->instruction_set)))
        return 0;
    in->size = scan->size;
    in->width = scan->gates_per_unit * in->size;
    in->carried = scan->streams * (scan->gates_per_unit == 4 ? 2 * in->size : in->size);
    return 1;
}

static int read_steps(scan_call *in) {
    if (!sf_read(&in->call, INT(in->scan, steps, 1, MOST_STEPS))) return 0;
    in->rows = (int64_t)in->scan.steps * in->scan.streams;
    return sf_read(&in->call, INPUT_OR_NONE(in->scan, start, SF_BOOL, in->rows));
}

static void close_scan(scan_call *in) { sf_close(&in->call); }
#define SCAN_CALL(name) __attribute__((cleanup(close_scan))) scan_call name

static PyObject *run(const scan_call *in, int (*function)(const sf_scan *)) {
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = function(&in->scan);
    Py_END_ALLOW_THREADS
    if (!done) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* scan_forward(*, …): `gates` and `saved` are None if there will be no backward pass. */
static PyObject *scan_forward(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    SCAN_CALL(in);
    sf_scan *scan = &in.scan;
    if (!begin(&in, "scan_forward", args, count, names) || !read_steps(&in)) return NULL;
    if (!sf_read(&in.call, INPUT(*scan, inward, SF_F32, in.rows * in.width), INPUT(*scan, carry, SF_F32, in.carried),
                 INPUT(*scan, weight, SF_F32, in.width * in.size), INPUT(*scan, bias, SF_F32, in.width),
                 OUTPUT(*scan, hidden, SF_F32, in.rows * in.size), OUTPUT(*scan, carried, SF_F32, in.carried),
                 OUTPUT_OR_NONE(*scan, gates, SF_F32, in.rows * in.width), OUTPUT_OR_NONE(*scan, saved, SF_F32, in.rows * in.size)) ||
        !sf_end(&in.call))
        return NULL;
    if (!scan->gates != !scan->saved) {
        PyErr_SetString(PyExc_ValueError, "gates and saved are both arrays, for a backward pass, or both None");
        return NULL;
    }
    return run(&in, in.ops->scan_forward);
}

/* scan_step(*, …): one step of N streams from its input on, for acting. */
static PyObject *scan_step(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    SCAN_CALL(in);
    sf_scan *scan = &in.scan;
    if (!begin(&in, "scan_step", args, count, names) || !sf_read(&in.call, INT(*scan, inputs, 1, MOST_INPUTS))) return NULL;
    const int64_t n = scan->streams;
    if (!sf_read(&in.call, INPUT_OR_NONE(*scan, start, SF_BOOL, n), INPUT(*scan, x, SF_F32, n * scan->inputs),
                 INPUT(*scan, weight_in, SF_F32, in.width * scan->inputs), INPUT(*scan, bias_in, SF_F32, in.width),
                 INPUT(*scan, carry, SF_F32, in.carried), INPUT(*scan, weight, SF_F32, in.width * in.size),
                 INPUT(*scan, bias, SF_F32, in.width), OUTPUT(*scan, hidden, SF_F32, n * in.size),
                 OUTPUT(*scan, carried, SF_F32, in.carried)) ||
        !sf_end(&in.call))
        return NULL;
    if (!in.ops->scan_forward(scan)) return PyErr_NoMemory(); /* too short to release the GIL for */
    Py_RETURN_NONE;
}

/* scan_backward(*, …): gradients that are None are 0; d_onward is None for an LSTM. Σ d_onward beforeᵀ is the gradient of the
 * weight, Σ d_onward that of the bias. */
static PyObject *scan_backward(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    SCAN_CALL(in);
    sf_scan *scan = &in.scan;
    if (!begin(&in, "scan_backward", args, count, names) || !read_steps(&in)) return NULL;
    sf_field d_onward = OUTPUT(*scan, d_onward, SF_F32, in.rows * in.width);
    d_onward.optional = scan->gates_per_unit == 4;
    if (!sf_read(&in.call, INPUT(*scan, carry, SF_F32, in.carried), INPUT(*scan, weight, SF_F32, in.width * in.size),
                 INPUT(*scan, hidden, SF_F32, in.rows * in.size), INPUT(*scan, gates, SF_F32, in.rows * in.width),
                 INPUT(*scan, saved, SF_F32, in.rows * in.size), INPUT_OR_NONE(*scan, d_hidden, SF_F32, in.rows * in.size),
                 INPUT_OR_NONE(*scan, d_carried, SF_F32, in.carried), OUTPUT(*scan, d_inward, SF_F32, in.rows * in.width),
                 OUTPUT(*scan, before, SF_F32, in.rows * in.size), OUTPUT(*scan, d_carry, SF_F32, in.carried)) ||
        !sf_read_fields(&in.call, &d_onward, 1) || !sf_end(&in.call))
        return NULL;
    return run(&in, in.ops->scan_backward);
}

PyMethodDef sf_scan_methods[] = {
    SF_KEYWORDS(scan_forward), SF_KEYWORDS(scan_step), SF_KEYWORDS(scan_backward), {NULL, NULL, 0, NULL}};
