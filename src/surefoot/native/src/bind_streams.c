/* Worlds for Python: a capsule around `sf_streams`, and plain buffers. */
#include "binding.h"
#include "streams.h"

#include <math.h>
#include <string.h>

#define MOST_NUMBERS (1 << 20)

static PyObject *refuse_null(const char *what, const char *instead) {
    return PyErr_Format(PyExc_ValueError, "%s is NULL; %s", what, instead);
}

static int checked_size(const char *what, int size, int least) {
    if (size >= least && size <= MOST_NUMBERS) return 1;
    PyErr_Format(PyExc_ValueError, "%s is %d; it must be from %d to %d", what, size, least, MOST_NUMBERS);
    return 0;
}

static int checked_bounds(const char *what, const float *low, const float *high, int size) {
    for (int k = 0; k < size; k++) {
        const float lowest = low ? low[k] : -INFINITY, highest = high ? high[k] : INFINITY;
        if (lowest <= highest) continue;
        PyErr_Format(PyExc_ValueError, "%s_low[%d] is not below %s_high[%d]", what, k, what, k);
        return 0;
    }
    return 1;
}

/* True if `env` can be run; else false with an exception that says what is wrong with it. The version comes first:
 * of another version nothing else is known. */
static int checked_env(const surefoot_env *env) {
    if (env->version != SUREFOOT_ENV_VERSION) {
        PyErr_Format(PyExc_ValueError, "version is %d; this surefoot knows %d: build it again with this surefoot's header",
                     env->version, SUREFOOT_ENV_VERSION);
        return 0;
    }
    if (!env->name || !env->name[0]) {
        PyErr_SetString(PyExc_ValueError, "name is empty; runs and reports need one");
        return 0;
    }
    if (!checked_size("state_size", env->state_size, 1) || !checked_size("obs_size", env->obs_size, 1)) return 0;
    if (!checked_size("choices", env->choices, 0)) return 0;
    if (!checked_size("action_size", env->action_size, env->choices ? 0 : 1)) return 0;
    if (env->max_episode_steps < 0) {
        PyErr_Format(PyExc_ValueError, "max_episode_steps is %d; it must be 0 (no limit) or more", env->max_episode_steps);
        return 0;
    }
    if (env->choices && env->action_size) {
        PyErr_Format(PyExc_ValueError, "choices is %d and action_size is %d; one of them must be 0", env->choices,
                     env->action_size);
        return 0;
    }
    if (!env->choices && !(env->action_low && env->action_high)) {
        refuse_null("action_low or action_high", "continuous actions need both");
        return 0;
    }
    if (!checked_bounds("obs", env->obs_low, env->obs_high, env->obs_size)) return 0;
    if (!checked_bounds("action", env->action_low, env->action_high, env->action_size)) return 0;
    if (!env->step || !env->observe || !(env->start || env->start_many)) {
        refuse_null(!env->step ? "step" : !env->observe ? "observe" : "start", "a world cannot be run without it");
        return 0;
    }
    return 1;
}

/* The world a Python object means: the name of a classic, or the address of a checked `surefoot_env`. */
static const surefoot_env *env_of(PyObject *which) {
    const surefoot_env *env;
    if (PyUnicode_Check(which)) {
        const char *name = PyUnicode_AsUTF8AndSize(which, NULL);
        if (!name) return NULL;
        env = sf_classic(name);
        if (!env) PyErr_Format(PyExc_ValueError, "the kernel has no world called '%s'", name);
        return env;
    }
    env = PyLong_AsVoidPtr(which);
    if (!env && !PyErr_Occurred()) refuse_null("the world", "surefoot_env_main must return one");
    return env && checked_env(env) ? env : NULL;
}

static void let_go(PyObject *capsule) { sf_streams_free(PyCapsule_GetPointer(capsule, SF_STREAMS_CAPSULE)); }

static sf_streams *streams_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, SF_STREAMS_CAPSULE); }

static int counted(Py_ssize_t given, Py_ssize_t wanted, const char *name) {
    if (given == wanted) return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments; got %zd", name, wanted, given);
    return 0;
}

static PyObject *numbers(const float *values, int size) {
    if (!values) Py_RETURN_NONE;
    PyObject *tuple = PyTuple_New(size);
    for (int k = 0; tuple && k < size; k++) {
        PyObject *number = PyFloat_FromDouble((double)values[k]);
        if (!number || PyTuple_SetItem(tuple, k, number) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *env_describe(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 1, "env_describe")) return NULL;
    const surefoot_env *env = env_of(args[0]);
    if (!env) return NULL;
    return Py_BuildValue("(siiNNiiNNi)", env->name, env->state_size, env->obs_size, numbers(env->obs_low, env->obs_size),
                         numbers(env->obs_high, env->obs_size), env->choices, env->action_size,
                         numbers(env->action_low, env->action_size), numbers(env->action_high, env->action_size),
                         env->max_episode_steps);
}

static PyObject *streams_new(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 2, "streams_new")) return NULL;
    const surefoot_env *env = env_of(args[0]);
    if (!env) return NULL;
    const long n = PyLong_AsLong(args[1]);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n < 1 || n > INT32_MAX / 2) return PyErr_Format(PyExc_ValueError, "the number of streams is %ld; it must be at least 1", n);
    sf_streams *s = sf_streams_new(env, (int)n);
    if (!s) return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(s, SF_STREAMS_CAPSULE, let_go);
    if (!capsule) sf_streams_free(s);
    return capsule;
}

static Py_ssize_t bytes_seen(const sf_streams *s) { return (Py_ssize_t)s->n * s->env->obs_size * (Py_ssize_t)sizeof(float); }

static PyObject *streams_begin(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 3, "streams_begin")) return NULL;
    sf_streams *s = streams_of(args[0]);
    if (!s) return NULL;
    const uint8_t *which = NULL;
    if (args[1] != Py_None && !(which = sf_memory(args[1], s->n, 0, "which"))) return NULL;
    float *obs = sf_memory(args[2], bytes_seen(s), 1, "obs");
    if (!obs) return NULL;
    sf_streams_begin(s, which, obs);
    Py_RETURN_NONE;
}

static PyObject *streams_observe(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 2, "streams_observe")) return NULL;
    sf_streams *s = streams_of(args[0]);
    if (!s) return NULL;
    float *obs = sf_memory(args[1], bytes_seen(s), 1, "obs");
    if (!obs) return NULL;
    sf_streams_observe(s, obs);
    Py_RETURN_NONE;
}

static PyObject *streams_step(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 7, "streams_step")) return NULL;
    sf_streams *s = streams_of(args[0]);
    if (!s) return NULL;
    const int64_t choices = s->env->choices;
    const Py_ssize_t n = s->n, action_bytes = choices ? n * 8 : n * s->env->action_size * (Py_ssize_t)sizeof(float);
    const void *action = sf_memory(args[1], action_bytes, 0, "action");
    float *obs = action ? sf_memory(args[2], bytes_seen(s), 1, "obs") : NULL;
    double *reward = obs ? sf_memory(args[3], n * 8, 1, "reward") : NULL;
    uint8_t *terminated = reward ? sf_memory(args[4], n, 1, "terminated") : NULL;
    uint8_t *truncated = terminated ? sf_memory(args[5], n, 1, "truncated") : NULL;
    if (!truncated) return NULL;
    float *final_obs = NULL;
    if (args[6] != Py_None && !(final_obs = sf_memory(args[6], bytes_seen(s), 1, "final_obs"))) return NULL;
    const int64_t *choice = action;
    for (Py_ssize_t i = 0; i < (choices ? n : 0); i++)
        if (choice[i] < 0 || choice[i] >= choices) return PyLong_FromLong(-1);
    return PyLong_FromLong(sf_streams_step(s, action, obs, reward, terminated, truncated, final_obs));
}

/* The three buffers of a state, as large as they must be: task [S][N] float64, elapsed [N] int64, the generator's 32 bytes. */
typedef struct {
    double *task;
    int64_t *elapsed;
    void *rng;
} buffers;

static int state_buffers(PyObject *const *args, const sf_streams *s, int writable, buffers *found) {
    found->task = sf_memory(args[1], (Py_ssize_t)s->n * s->env->state_size * 8, writable, "task");
    if (found->task) found->elapsed = sf_memory(args[2], (Py_ssize_t)s->n * 8, writable, "elapsed");
    if (found->task && found->elapsed) found->rng = sf_memory(args[3], 32, writable, "rng");
    return found->rng != NULL;
}

static PyObject *streams_state(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    buffers to = {NULL, NULL, NULL};
    if (!counted(count, 4, "streams_state")) return NULL;
    const sf_streams *s = streams_of(args[0]);
    if (!s || !state_buffers(args, s, 1, &to)) return NULL;
    const size_t n = (size_t)s->n, size = (size_t)s->env->state_size;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < size; k++) to.task[k * n + i] = s->state[i * size + k];
    memcpy(to.elapsed, s->elapsed, n * sizeof *to.elapsed);
    memcpy(to.rng, &s->rng, sizeof s->rng);
    Py_RETURN_NONE;
}

static PyObject *streams_set_state(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    buffers from = {NULL, NULL, NULL};
    if (!counted(count, 4, "streams_set_state")) return NULL;
    sf_streams *s = streams_of(args[0]);
    if (!s || !state_buffers(args, s, 0, &from)) return NULL;
    const size_t n = (size_t)s->n, size = (size_t)s->env->state_size;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < size; k++) s->state[i * size + k] = from.task[k * n + i];
    memcpy(s->elapsed, from.elapsed, n * sizeof *s->elapsed);
    memcpy(&s->rng, from.rng, sizeof s->rng);
    Py_RETURN_NONE;
}

static PyObject *streams_seed(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    if (!counted(count, 2, "streams_seed")) return NULL;
    sf_streams *s = streams_of(args[0]);
    const void *rng = s ? sf_memory(args[1], 32, 0, "rng") : NULL;
    if (!rng) return NULL;
    memcpy(&s->rng, rng, sizeof s->rng);
    Py_RETURN_NONE;
}

#define METHOD(name, doc) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, doc}

PyMethodDef sf_streams_methods[] = {
    METHOD(env_describe, "What a world is: (name, state_size, obs_size, obs_low, obs_high, choices, action_size, action_low, "
                         "action_high, max_episode_steps)."),
    METHOD(streams_new, "N streams of a classic's name or of the `surefoot_env` at an address."),
    METHOD(streams_seed, "Put in a generator: state and inc, 16 bytes each."),
    METHOD(streams_begin, "Begin new episodes where `which` says so (everywhere if None); writes those rows of obs."),
    METHOD(streams_observe, "What all streams see."),
    METHOD(streams_step, "One step; how many episodes ended, or -1 (and nothing moved) if a choice is out of range."),
    METHOD(streams_state, "Write out task [S, N], elapsed [N] and the generator."),
    METHOD(streams_set_state, "Put in task [S, N], elapsed [N] and the generator."),
    {NULL, NULL, 0, NULL}};
