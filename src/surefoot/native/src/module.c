/* surefoot.native._kernel: plain buffers in, plain buffers out. */
#include "binding.h"

static int fill(PyObject *module) {
    if (PyModule_AddFunctions(module, sf_net_methods) < 0) return -1;
    if (PyModule_AddFunctions(module, sf_scan_methods) < 0) return -1;
    return PyModule_AddFunctions(module, sf_streams_methods);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)fill}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernel", "Acting, learning and stepping worlds, in C.", 0, NULL, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&definition); }
