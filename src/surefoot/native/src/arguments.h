/* Arguments of the module's functions. Each function lists what it takes in tables of `sf_field`; `sf_read` converts, checks and
 * stores every value, and its exceptions name the field. A field is named like the struct member that receives it. */
#ifndef SF_ARGUMENTS_H
#define SF_ARGUMENTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef enum { SF_F32, SF_F64, SF_I8, SF_I16, SF_I32, SF_I64, SF_U64, SF_BOOL, SF_BYTES } sf_type;

typedef enum {
    SF_CAPSULE, /* void *: what a capsule called `text` holds */
    SF_ADDRESS, /* void *: an address that Python knows as an integer, 0 for NULL */
    SF_INT,     /* int from `low` to `high` */
    SF_LONG,    /* int64_t from `low` to `high` */
    SF_FLOAT,   /* float */
    SF_DOUBLE,  /* double */
    SF_TEXT,    /* const char * */
    SF_NAME,    /* int: the position of a string in `names`, which NULL ends */
    SF_INTS,    /* sf_ints: a tuple of at most `count` integers from `low` to `high` */
    SF_INPUT,   /* const void *: a C-contiguous buffer of `count` items of `type` */
    SF_OUTPUT,  /* void *: the same, writable */
} sf_kind;

#define SF_MAX_INTS 64
typedef struct {
    int count, value[SF_MAX_INTS];
} sf_ints;

typedef struct {
    const char *name;
    void *to;
    sf_kind kind;
    int64_t low, high, count;
    sf_type type;
    int optional; /* None is stored as NULL */
    const char *const *names;
    const char *text;
} sf_field;

#define SF_FIELD(s, member, ...) {.name = #member, .to = &(s).member, __VA_ARGS__}
#define CAPSULE(s, member, called) SF_FIELD(s, member, .kind = SF_CAPSULE, .text = (called))
#define ADDRESS(s, member) SF_FIELD(s, member, .kind = SF_ADDRESS)
#define INT(s, member, least, most) SF_FIELD(s, member, .kind = SF_INT, .low = (least), .high = (most))
#define LONG(s, member, least, most) SF_FIELD(s, member, .kind = SF_LONG, .low = (least), .high = (most))
#define FLOAT(s, member) SF_FIELD(s, member, .kind = SF_FLOAT)
#define DOUBLE(s, member) SF_FIELD(s, member, .kind = SF_DOUBLE)
#define TEXT(s, member) SF_FIELD(s, member, .kind = SF_TEXT)
#define NAME(s, member, list) SF_FIELD(s, member, .kind = SF_NAME, .names = (list))
#define INTS(s, member, least, most, longest) \
    SF_FIELD(s, member, .kind = SF_INTS, .low = (least), .high = (most), .count = (longest))
#define INPUT(s, member, of, items) SF_FIELD(s, member, .kind = SF_INPUT, .type = (of), .count = (items))
#define OUTPUT(s, member, of, items) SF_FIELD(s, member, .kind = SF_OUTPUT, .type = (of), .count = (items))
#define INPUT_OR_NONE(s, member, of, items) \
    SF_FIELD(s, member, .kind = SF_INPUT, .type = (of), .count = (items), .optional = 1)
#define OUTPUT_OR_NONE(s, member, of, items) \
    SF_FIELD(s, member, .kind = SF_OUTPUT, .type = (of), .count = (items), .optional = 1)

/* Buffers that stay exported, so that nobody can resize or free the memory under the kernel while the GIL is free. */
#define SF_MAX_VIEWS 64
typedef struct {
    int count;
    Py_buffer view[SF_MAX_VIEWS];
} sf_views;
void sf_release(sf_views *views);

/* One call. Tables are read in turn: fields take the positional arguments in order, and the rest by keyword. */
typedef struct {
    const char *function;
    PyObject *const *args;
    Py_ssize_t positional, keywords, next, next_keyword;
    PyObject *names; /* of the keywords */
    uint64_t used;   /* one bit per keyword */
    sf_views views;
} sf_call;

/* Declare a call whose buffers are released where its scope ends, by whichever return. */
void sf_close(sf_call *call);
#define SF_CALL(name) __attribute__((cleanup(sf_close))) sf_call name; name.views.count = 0

/* Begin a call that must have `positional` positional arguments. All return 0 with an exception set if something is wrong. */
int sf_begin(sf_call *call, const char *function, PyObject *const *args, Py_ssize_t count, PyObject *names, Py_ssize_t positional);
int sf_read_fields(sf_call *call, const sf_field *fields, size_t count);
#define sf_read(call, ...) \
    sf_read_fields(call, (const sf_field[]){__VA_ARGS__}, sizeof((const sf_field[]){__VA_ARGS__}) / sizeof(sf_field))
/* Refuse keywords that no table has read. */
int sf_end(const sf_call *call);

#define SF_POSITIONAL(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
#define SF_KEYWORDS(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL | METH_KEYWORDS, NULL}

#endif
