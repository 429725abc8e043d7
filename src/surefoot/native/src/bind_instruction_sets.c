/* Choice of the instruction set that a network computes with. */
#include "binding.h"
#include "network.h"

const sf_ops *sf_ops_named(const char *name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (avx512 && (!strcmp(name, "avx512") || !strcmp(name, "auto"))) return &sf_ops_avx512;
    if (avx2 && (!strcmp(name, "avx2") || !strcmp(name, "auto"))) return &sf_ops_avx2;
    if (avx2 && !strcmp(name, "wide")) return &sf_ops_wide;
#endif
    if (!strcmp(name, "base") || !strcmp(name, "auto")) return &sf_ops_base;
    PyErr_Format(PyExc_ValueError, "this machine has no instruction set %s", name);
    return NULL;
}

/* instruction_sets() → the names of those that this machine has, the best one first. */
static PyObject *instruction_sets(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    static const char *const all[] = {"avx512", "avx2", "wide", "base"};
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sizeof all / sizeof *all; i++) {
        if (!sf_ops_named(all[i])) {
            PyErr_Clear();
            continue;
        }
        PyObject *name = PyUnicode_FromString(all[i]);
        if (!name || PyList_Append(list, name) < 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

PyMethodDef sf_instruction_set_methods[] = {{"instruction_sets", instruction_sets, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
