/* Functions that only tests call: the vector functions and the products of gemm.h. */
#include "binding.h"
#include "network.h"

typedef struct {
    const char *instruction_set;
    int64_t which, n, m, k;
    const float *x, *a, *b;
    float *y, *c;
} testing_call;

/* function(instruction_set, which, n, x [n], y [n]) */
static PyObject *function(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    testing_call in = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "function", args, count, NULL, 5) ||
        !sf_read(&call, TEXT(in, instruction_set), LONG(in, which, 0, 13), LONG(in, n, 0, SF_MAX_ROWS)) ||
        !sf_read(&call, INPUT(in, x, SF_F32, in.n), OUTPUT(in, y, SF_F32, in.n)))
        return NULL;
    const sf_ops *ops = sf_ops_named(in.instruction_set);
    if (!ops) return NULL;
    ops->function((int)in.which, (int)in.n, in.x, in.y);
    Py_RETURN_NONE;
}

/* multiply(instruction_set, m, n, k, a [m][k], b [k][n], c [m][n]): c = a·b */
static PyObject *multiply(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    testing_call in = {0};
    SF_CALL(call);
    const int64_t most = 1 << 24;
    if (!sf_begin(&call, "multiply", args, count, NULL, 7) ||
        !sf_read(&call, TEXT(in, instruction_set), LONG(in, m, 1, most), LONG(in, n, 1, most), LONG(in, k, 1, most)) ||
        !sf_read(&call, INPUT(in, a, SF_F32, in.m * in.k), INPUT(in, b, SF_F32, in.k * in.n), OUTPUT(in, c, SF_F32, in.m * in.n)))
        return NULL;
    const sf_ops *ops = sf_ops_named(in.instruction_set);
    if (!ops) return NULL;
    ops->multiply((int)in.m, (int)in.n, (int)in.k, in.a, in.b, in.c);
    Py_RETURN_NONE;
}

PyMethodDef sf_testing_methods[] = {SF_POSITIONAL(function), SF_POSITIONAL(multiply), {NULL, NULL, 0, NULL}};
