/* Built-in and user-written environments for Python: a capsule around `sf_streams`, and plain buffers. */
#include "binding.h"
#include "bind_rollout.h"
#include "streams.h"
#include <string.h>

typedef struct {
    sf_streams *streams;
    int64_t n;
    const uint8_t *which;
    const void *action;
    float *obs, *final_obs;
    double *reward, *task;
    uint8_t *terminated, *truncated;
    int64_t *elapsed;
    void *rng;
} streams_call;

/* The environment that a Python object means: the name of a built-in one, the address of a `surefoot_env`, or streams of it. */
static const surefoot_env *env_of(PyObject *which) {
    const surefoot_env *env;
    if (PyCapsule_CheckExact(which)) {
        const sf_streams *streams = PyCapsule_GetPointer(which, SF_STREAMS_CAPSULE);
        return streams ? streams->env : NULL;
    }
    if (PyUnicode_Check(which)) {
        const char *name = PyUnicode_AsUTF8AndSize(which, NULL);
        if (!name) return NULL;
        env = sf_classic(name);
        if (!env) PyErr_Format(PyExc_ValueError, "the kernel has no world called '%s'", name);
        return env;
    }
    env = PyLong_AsVoidPtr(which);
    if (!env && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the world is NULL; surefoot_env_main must return one");
    return env && sf_check_env(env) ? env : NULL;
}

int sf_streams_are_free(const sf_streams *streams) {
    if (!streams->busy && !streams->empty) return 1;
    PyErr_SetString(PyExc_RuntimeError, streams->empty ? "the environment has no simulations yet; call mujoco_point"
                                                       : "the environment is in use by another thread; give each thread its own");
    return 0;
}

static void free_streams(PyObject *capsule) { sf_streams_free(PyCapsule_GetPointer(capsule, SF_STREAMS_CAPSULE)); }

PyObject *sf_streams_capsule(sf_streams *streams) {
    PyObject *capsule = PyCapsule_New(streams, SF_STREAMS_CAPSULE, free_streams);
    if (!capsule) sf_streams_free(streams);
    return capsule;
}

/* Read the streams that begin a call with this many arguments. */
static int begin(sf_call *call, const char *function, PyObject *const *args, Py_ssize_t count, Py_ssize_t wanted, streams_call *in) {
    return sf_begin(call, function, args, count, NULL, wanted) && sf_read(call, CAPSULE(*in, streams, SF_STREAMS_CAPSULE)) &&
           sf_streams_are_free(in->streams);
}

/* Free the GIL for a step of simulations: they take long, and MuJoCo's warnings may call Python from any thread. */
static PyThreadState *let_go(sf_streams *streams) {
    if (!streams->owned) return NULL;
    streams->busy = 1;
    return PyEval_SaveThread();
}

static void take_back(sf_streams *streams, PyThreadState *thread) {
    if (!thread) return;
    PyEval_RestoreThread(thread);
    streams->busy = 0;
}

static int64_t obs_numbers(const sf_streams *s) { return (int64_t)s->n * s->env->obs_size; }

/* A tuple of floats, or None for NULL. */
static PyObject *numbers(const float *values, int size) {
    if (!values) Py_RETURN_NONE;
    PyObject *tuple = PyTuple_New(size);
    for (int k = 0; tuple && k < size; k++) {
        PyObject *number = PyFloat_FromDouble((double)values[k]);
        if (!number || PyTuple_SetItem(tuple, k, number) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

/* env_describe(which) → (name, state_size, obs_size, obs_low, obs_high, choices, action_size, action_low, action_high,
 * max_episode_steps) */
static PyObject *env_describe(PyObject *self, PyObject *which) {
    const surefoot_env *env = env_of(which);
    if (!env) return NULL;
    return Py_BuildValue("(siiNNiiNNi)", env->name, env->state_size, env->obs_size, numbers(env->obs_low, env->obs_size),
                         numbers(env->obs_high, env->obs_size), env->choices, env->action_size,
                         numbers(env->action_low, env->action_size), numbers(env->action_high, env->action_size),
                         env->max_episode_steps);
}

/* streams_new(which, n): n streams of a built-in environment or of the `surefoot_env` at an address. */
static PyObject *streams_new(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    SF_CALL(call);
    if (!sf_begin(&call, "streams_new", args, count, NULL, 2)) return NULL;
    const surefoot_env *env = env_of(args[0]);
    if (!env) return NULL;
    const long n = PyLong_AsLong(args[1]);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n < 1 || n > INT32_MAX / 2) return PyErr_Format(PyExc_ValueError, "the number of streams is %ld; it must be at least 1", n);
    sf_streams *s = sf_streams_new(env, (int)n);
    if (!s) return PyErr_NoMemory();
    return sf_streams_capsule(s);
}

/* streams_begin(streams, which, obs): begin episodes where `which` is true (everywhere if None); writes those rows of obs. */
static PyObject *streams_begin(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    streams_call in = {0};
    SF_CALL(call);
    if (!begin(&call, "streams_begin", args, count, 3, &in) ||
        !sf_read(&call, INPUT_OR_NONE(in, which, SF_BOOL, in.streams->n), OUTPUT(in, obs, SF_F32, obs_numbers(in.streams))))
        return NULL;
    PyThreadState *thread = let_go(in.streams);
    sf_streams_begin(in.streams, in.which, in.obs);
    take_back(in.streams, thread);
    Py_RETURN_NONE;
}

/* streams_observe(streams, obs): the current observations. */
static PyObject *streams_observe(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    streams_call in = {0};
    SF_CALL(call);
    if (!begin(&call, "streams_observe", args, count, 2, &in) ||
        !sf_read(&call, OUTPUT(in, obs, SF_F32, obs_numbers(in.streams))))
        return NULL;
    sf_streams_observe(in.streams, in.obs);
    Py_RETURN_NONE;
}

/* streams_step(streams, action, obs, reward, terminated, truncated, final_obs) → how many episodes ended, or -1 (and nothing
 * moved) if a choice is out of range. */
static PyObject *streams_step(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    streams_call in = {0};
    SF_CALL(call);
    if (!begin(&call, "streams_step", args, count, 7, &in)) return NULL;
    const surefoot_env *env = in.streams->env;
    const int64_t n = in.streams->n, obs_size = obs_numbers(in.streams), choices = env->choices;
    if (!sf_read(&call, INPUT(in, action, choices ? SF_I64 : SF_F32, choices ? n : n * env->action_size),
                 OUTPUT(in, obs, SF_F32, obs_size), OUTPUT(in, reward, SF_F64, n), OUTPUT(in, terminated, SF_BOOL, n),
                 OUTPUT(in, truncated, SF_BOOL, n), OUTPUT_OR_NONE(in, final_obs, SF_F32, obs_size)))
        return NULL;
    const int64_t *choice = in.action;
    for (int64_t i = 0; i < (choices ? n : 0); i++)
        if (choice[i] < 0 || choice[i] >= choices) return PyLong_FromLong(-1);
    PyThreadState *thread = let_go(in.streams);
    const int ended = sf_streams_step(in.streams, in.action, in.obs, in.reward, in.terminated, in.truncated, in.final_obs);
    take_back(in.streams, thread);
    return PyLong_FromLong(ended);
}

/* Read the buffers of a state: task [S][N] float64, elapsed [N] int64, the generator's 32 bytes. */
static int read_state(sf_call *call, streams_call *in, sf_kind kind) {
    const sf_streams *s = in->streams;
    sf_field fields[] = {OUTPUT(*in, task, SF_F64, (int64_t)s->n * s->env->state_size), OUTPUT(*in, elapsed, SF_I64, s->n),
                         OUTPUT(*in, rng, SF_BYTES, sizeof s->rng)};
    for (int i = 0; i < 3; i++) fields[i].kind = kind;
    return sf_read_fields(call, fields, 3);
}

/* streams_state(streams, task, elapsed, rng): copy the state out. */
static PyObject *streams_state(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    streams_call to = {0};
    SF_CALL(call);
    if (!begin(&call, "streams_state", args, count, 4, &to) || !read_state(&call, &to, SF_OUTPUT)) return NULL;
    const sf_streams *s = to.streams;
    const size_t n = (size_t)s->n, size = (size_t)s->env->state_size;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < size; k++) to.task[k * n + i] = s->state[i * size + k];
    memcpy(to.elapsed, s->elapsed, n * sizeof *to.elapsed);
    memcpy(to.rng, &s->rng, sizeof s->rng);
    Py_RETURN_NONE;
}

/* streams_set_state(streams, task, elapsed, rng): copy the state in. */
static PyObject *streams_set_state(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    streams_call from = {0};
    SF_CALL(call);
    if (!begin(&call, "streams_set_state", args, count, 4, &from) || !read_state(&call, &from, SF_INPUT)) return NULL;
    sf_streams *s = from.streams;
    const size_t n = (size_t)s->n, size = (size_t)s->env->state_size;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < size; k++) s->state[i * size + k] = from.task[k * n + i];
    memcpy(s->elapsed, from.elapsed, n * sizeof *s->elapsed);
    memcpy(&s->rng, from.rng, sizeof s->rng);
    Py_RETURN_NONE;
}

/* streams_seed(streams, rng): set the generator, state and increment of 16 bytes each. */
static PyObject *streams_seed(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    streams_call in = {0};
    SF_CALL(call);
    if (!begin(&call, "streams_seed", args, count, 2, &in) || !sf_read(&call, INPUT(in, rng, SF_BYTES, sizeof in.streams->rng)))
        return NULL;
    memcpy(&in.streams->rng, in.rng, sizeof in.streams->rng);
    Py_RETURN_NONE;
}

PyMethodDef sf_streams_methods[] = {{"env_describe", env_describe, METH_O, NULL},
                                    SF_POSITIONAL(streams_new),
                                    SF_POSITIONAL(streams_seed),
                                    SF_POSITIONAL(streams_begin),
                                    SF_POSITIONAL(streams_observe),
                                    SF_POSITIONAL(streams_step),
                                    SF_POSITIONAL(streams_state),
                                    SF_POSITIONAL(streams_set_state),
                                    {NULL, NULL, 0, NULL}};
