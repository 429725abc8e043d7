/* What the parts of the extension module share. Built against Python's stable interface: one wheel serves 3.11 and later. */
#ifndef SF_BINDING_H
#define SF_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

extern PyMethodDef sf_net_methods[];
extern PyMethodDef sf_streams_methods[];
extern PyMethodDef sf_scan_methods[];

/* The arithmetic of an instruction set, or NULL with an exception set. */
const struct sf_ops *sf_ops_of(PyObject *name);

/* The memory of a C-contiguous buffer of exactly `bytes` bytes (any size if negative), or NULL with an exception set.
 * The view is let go at once: the caller's reference keeps the memory alive for as long as the call lasts. */
static inline void *sf_memory(PyObject *object, Py_ssize_t bytes, int writable, const char *what) {
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0) return NULL;
    void *memory = view.buf;
    const Py_ssize_t have = view.len, item = view.itemsize;
    PyBuffer_Release(&view);
    const uintptr_t below = item >= 8 ? 7 : item == 4 ? 3 : item == 2 ? 1 : 0;
    if ((uintptr_t)memory & below) {
        PyErr_Format(PyExc_ValueError, "%s does not begin at a multiple of its item's size; pass a copy", what);
        return NULL;
    }
    if (bytes >= 0 && have != bytes) {
        PyErr_Format(PyExc_ValueError, "%s has %zd bytes; it must have %zd", what, have, bytes);
        return NULL;
    }
    return memory;
}

static inline int count_is(Py_ssize_t have, Py_ssize_t want, const char *what) {
    if (have == want) return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", what, want, have);
    return 0;
}

static inline void *optional(PyObject *object, Py_ssize_t bytes, int writable, const char *what, int *failed) {
    if (object == Py_None) return NULL;
    void *memory = sf_memory(object, bytes, writable, what);
    if (!memory) *failed = 1;
    return memory;
}

/* A whole number from `least` to `most`; anything else is an exception, and *failed. */
static inline int64_t whole(PyObject *object, int64_t least, int64_t most, const char *what, int *failed) {
    const long long n = PyLong_AsLongLong(object);
    if (n == -1 && PyErr_Occurred()) *failed = 1;
    else if (n < least || n > most) {
        PyErr_Format(PyExc_ValueError, "%s is %lld; it must be from %lld to %lld", what, n, (long long)least, (long long)most);
        *failed = 1;
    }
    return *failed ? least : n;
}

#endif
