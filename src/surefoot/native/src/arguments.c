/* Conversion and checks of arguments (arguments.h). */
#include "arguments.h"
#include <string.h>

/* Size, name, and the letters of the struct module that mean this type; an `l` is as long as the platform's long. */
static const struct {
    int64_t size;
    const char *name, *letters;
} types[] = {[SF_F32] = {4, "float32", "f"}, [SF_F64] = {8, "float64", "d"}, [SF_I8] = {1, "int8", "b"},
             [SF_I16] = {2, "int16", "h"}, [SF_I32] = {4, "int32", "il"}, [SF_I64] = {8, "int64", "lq"},
             [SF_U64] = {8, "uint64", "LQ"}, [SF_BOOL] = {1, "bool", "?Bb"}, [SF_BYTES] = {1, "bytes", ""}};

void sf_release(sf_views *views) {
    while (views->count) PyBuffer_Release(&views->view[--views->count]);
}

void sf_close(sf_call *call) { sf_release(&call->views); }

int sf_begin(sf_call *call, const char *function, PyObject *const *args, Py_ssize_t count, PyObject *names, Py_ssize_t positional) {
    *call = (sf_call){.function = function, .args = args, .positional = count, .names = names, .views = {.count = 0}};
    call->keywords = names ? PyTuple_Size(names) : 0;
    if (count == positional) return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments; got %zd", function, positional, count);
    return 0;
}

/* The next positional argument, or the keyword of this name. Callers usually pass keywords in the order of the tables, so the
 * search begins after the one found last. */
static PyObject *argument(sf_call *call, const char *name) {
    if (call->next < call->positional) return call->args[call->next++];
    for (Py_ssize_t i = 0; i < call->keywords; i++) {
        const Py_ssize_t at = (call->next_keyword + i) % call->keywords;
        if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(call->names, at), name)) continue;
        call->next_keyword = at + 1;
        if (at < 64) call->used |= (uint64_t)1 << at;
        return call->args[call->positional + at];
    }
    return PyErr_Format(PyExc_TypeError, "%s needs the argument '%s'", call->function, name);
}

int sf_end(const sf_call *call) {
    for (Py_ssize_t at = 0; at < call->keywords; at++)
        if (at >= 64 || !(call->used >> at & 1)) {
            PyErr_Format(PyExc_TypeError, "%s has no argument '%U'", call->function, PyTuple_GetItem(call->names, at));
            return 0;
        }
    return 1;
}

static int integer(PyObject *object, const sf_field *field, int64_t *to) {
    const long long n = PyLong_AsLongLong(object);
    if (n == -1 && PyErr_Occurred()) return 0;
    *to = n;
    if (n >= field->low && n <= field->high) return 1;
    PyErr_Format(PyExc_ValueError, "%s is %lld; it must be from %lld to %lld", field->name, n, (long long)field->low,
                 (long long)field->high);
    return 0;
}

static int integers(PyObject *tuple, const sf_field *field, sf_ints *to) {
    if (!PyTuple_Check(tuple)) {
        PyErr_Format(PyExc_TypeError, "%s must be a tuple of integers", field->name);
        return 0;
    }
    const Py_ssize_t count = PyTuple_Size(tuple);
    if (count > field->count) {
        PyErr_Format(PyExc_ValueError, "%s has %zd entries; the kernel takes up to %lld", field->name, count, (long long)field->count);
        return 0;
    }
    to->count = (int)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t n;
        if (!integer(PyTuple_GetItem(tuple, i), field, &n)) return 0;
        to->value[i] = (int)n;
    }
    return 1;
}

static int name_index(PyObject *object, const sf_field *field, int *to) {
    const char *text = PyUnicode_AsUTF8AndSize(object, NULL);
    if (!text) return 0;
    for (*to = 0; field->names[*to]; ++*to)
        if (!strcmp(text, field->names[*to])) return 1;
    PyErr_Format(PyExc_ValueError, "the kernel has no %s called '%s'", field->name, text);
    return 0;
}

/* True if the items of a buffer are of this type. A format without a letter for the byte order is the machine's own. */
static int has_type(const Py_buffer *view, sf_type type) {
    if (type == SF_BYTES) return 1;
    const char *format = view->format ? view->format : "B";
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (*format == '<') format++;
#else
    if (*format == '>') format++;
#endif
    if (*format == '@' || *format == '=') format++;
    return view->itemsize == types[type].size && *format && !format[1] && strchr(types[type].letters, *format);
}

/* Store the address of a buffer, which stays exported until the call ends. */
static int buffer(sf_call *call, PyObject *object, const sf_field *field) {
    void *memory = NULL;
    if (field->optional && object == Py_None) {
        memcpy(field->to, &memory, sizeof memory);
        return 1;
    }
    if (call->views.count == SF_MAX_VIEWS) {
        PyErr_Format(PyExc_SystemError, "%s takes more than %d buffers", call->function, SF_MAX_VIEWS);
        return 0;
    }
    Py_buffer *view = &call->views.view[call->views.count];
    const int flags = PyBUF_ND | PyBUF_FORMAT | (field->kind == SF_OUTPUT ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0) return 0;
    call->views.count++;
    memory = view->buf;
    const Py_ssize_t bytes = view->len, item = (Py_ssize_t)types[field->type].size, wanted = (Py_ssize_t)field->count * item;
    if (!has_type(view, field->type)) {
        PyErr_Format(PyExc_ValueError, "%s has items of format '%s' and %zd bytes; it must have %s", field->name,
                     view->format ? view->format : "B", view->itemsize, types[field->type].name);
        return 0;
    }
    if ((uintptr_t)memory % (uintptr_t)item) {
        PyErr_Format(PyExc_ValueError, "%s does not begin at a multiple of its item's size; pass a copy", field->name);
        return 0;
    }
    if (bytes != wanted) {
        PyErr_Format(PyExc_ValueError, "%s has %zd bytes; it must have %zd", field->name, bytes, wanted);
        return 0;
    }
    memcpy(field->to, &memory, sizeof memory); /* the member may be a pointer of any type */
    return 1;
}

static int read_one(sf_call *call, PyObject *object, const sf_field *field) {
    int64_t n = 0;
    double x = 0.0;
    void *pointer = NULL;
    switch (field->kind) {
    case SF_CAPSULE:
        pointer = PyCapsule_GetPointer(object, field->text);
        memcpy(field->to, &pointer, sizeof pointer);
        return pointer != NULL;
    case SF_ADDRESS:
        pointer = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(object);
        if (PyErr_Occurred()) return 0;
        memcpy(field->to, &pointer, sizeof pointer);
        return 1;
    case SF_INT:
        if (!integer(object, field, &n)) return 0;
        *(int *)field->to = (int)n;
        return 1;
    case SF_LONG: return integer(object, field, field->to);
    case SF_FLOAT:
    case SF_DOUBLE:
        x = PyFloat_AsDouble(object);
        if (x == -1.0 && PyErr_Occurred()) return 0;
        if (field->kind == SF_FLOAT) *(float *)field->to = (float)x;
        else *(double *)field->to = x;
        return 1;
    case SF_TEXT: return (*(const char **)field->to = PyUnicode_AsUTF8AndSize(object, NULL)) != NULL;
    case SF_NAME: return name_index(object, field, field->to);
    case SF_INTS: return integers(object, field, field->to);
    case SF_INPUT:
    case SF_OUTPUT: return buffer(call, object, field);
    }
    return 0;
}

int sf_read_fields(sf_call *call, const sf_field *fields, size_t count) {
    for (size_t i = 0; i < count; i++) {
        PyObject *object = argument(call, fields[i].name);
        if (!object || !read_one(call, object, &fields[i])) return 0;
    }
    return 1;
}
