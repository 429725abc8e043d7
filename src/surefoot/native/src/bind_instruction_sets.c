/* Choice of the instruction set that a network computes with. */
#include "binding.h"
#include "network.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* What this machine has, by CPUID (Intel's manual, volume 2A) and the registers that the system saves (XCR0). Not
 * __builtin_cpu_supports: with some runtimes of Clang a shared library cannot be linked to it. */
static void find_instruction_sets(int *avx2, int *avx512) {
    unsigned a, b, c, d, saved = 0, high;
    *avx2 = *avx512 = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1) || !(c >> 12 & 1)) return; /* OSXSAVE, FMA */
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    *avx2 = (saved & 0x6) == 0x6 && b >> 5 & 1 && b >> 8 & 1; /* AVX2, BMI2 */
    *avx512 = *avx2 && (saved & 0xe6) == 0xe6 && b >> 16 & 1 && b >> 17 & 1 && b >> 30 & 1 && b >> 31; /* F, DQ, BW, VL */
}
#endif

const sf_ops *sf_ops_named(const char *name) {
#if defined(__x86_64__)
    static int asked, avx2, avx512; /* under the GIL; a virtual machine may take microseconds to answer */
    if (!asked) find_instruction_sets(&avx2, &avx512);
    asked = 1;
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
