/* surefoot.native._kernel: the functions of bind_*.c, and the constants that C and Python share. */
#include "binding.h"
#include "network.h"
#include "rollout.h"

static int add_names(PyObject *module, const char *constant, const char *const *names) {
    Py_ssize_t count = 0;
    while (names[count]) count++;
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (!name || PyTuple_SetItem(tuple, i, name) < 0) Py_CLEAR(tuple);
    }
    const int failed = !tuple || PyModule_AddObjectRef(module, constant, tuple) < 0;
    Py_XDECREF(tuple);
    return failed ? -1 : 0;
}

static int fill(PyObject *module) {
    PyMethodDef *const methods[] = {sf_instruction_set_methods, sf_net_methods,        sf_act_methods,  sf_learn_methods,
                                    sf_rollout_methods,         sf_statistics_methods, sf_step_methods, sf_scan_methods,
                                    sf_streams_methods,         sf_mujoco_methods,     sf_town_methods,       sf_testing_methods};
    const struct {
        const char *name, *const *names;
    } lists[] = {{"ACTIVATIONS", sf_activation_names}, {"HEADS", sf_head_names}, {"OPTIMIZERS", sf_optimizer_names}};
    const struct {
        const char *name;
        long value;
    } numbers[] = {{"MAX_DEPTH", SF_MAX_DEPTH}, {"MAX_CHOICES", SF_MAX_CHOICES},     {"TABLE_COLUMNS", SF_COLUMNS},
                   {"RECORDED", SF_RECORDED},   {"EPISODE_ENDED", SF_EPISODE_ENDED}, {"NON_FINITE", SF_NON_FINITE}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (PyModule_AddFunctions(module, methods[i]) < 0) return -1;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (add_names(module, lists[i].name, lists[i].names) < 0) return -1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (PyModule_AddIntConstant(module, numbers[i].name, numbers[i].value) < 0) return -1;
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)fill}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernel", "Acting, learning and stepping environments in C.", 0, NULL, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&definition); }
