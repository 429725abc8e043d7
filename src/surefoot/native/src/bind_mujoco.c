/* MuJoCo's tasks for Python: streams that step the mjData of Gymnasium's envs. */
#include "binding.h"
#include "bind_rollout.h"
#include "mujoco_tasks.h"

#include <string.h>

/* A world's numbers, the buffers that they are in, and the Python objects whose addresses the streams hold. */
typedef struct {
    sf_mujoco shared; /* the first member: `sf_streams.env` points into it */
    sf_views views;
    PyObject *alive;
} held_mujoco;

static void release(void *owned) {
    held_mujoco *held = owned;
    sf_release(&held->views);
    Py_XDECREF(held->alive);
    free(held);
}

static const sf_task *task_called(const char *name) {
    const sf_task *task = sf_tasks;
    while (task->name && strcmp(task->name, name) != 0) task++;
    if (task->name) return task;
    PyErr_Format(PyExc_ValueError, "the kernel has no MuJoCo task called '%s'", name);
    return NULL;
}

/* 1 if the pieces of the observation are within arrays of these lengths and make it up. */
static int pieces_fit(const sf_mujoco *w, const int64_t *lengths) {
    int64_t total = 0;
    for (const sf_piece *p = w->piece; p < w->piece + w->pieces; total += p++->count) {
        const int known = p->array >= 0 && p->array < SF_ARRAYS && p->function >= 0 && p->function < SF_FUNCTIONS && p->count >= 0;
        const int64_t last = known ? p->first + p->count + (p->minus > 0 ? p->minus : 0) : -1;
        if (known && p->first >= 0 && p->first + p->minus >= 0 && last <= lengths[p->array]) continue;
        PyErr_Format(PyExc_ValueError, "piece %d of the observation is outside its array", (int)(p - w->piece));
        return 0;
    }
    if (total == w->env.obs_size) return 1;
    PyErr_Format(PyExc_ValueError, "the observation has %lld numbers, not %d", (long long)total, w->env.obs_size);
    return 0;
}

typedef struct {
    const char *name;
    int n, threads;
    const float *low, *high;
    const int64_t *lengths;
    sf_streams *streams;
    const uint64_t *functions, *addresses;
    const int64_t *elapsed;
} mujoco_call;

/* Read the members of sf_mujoco. The buffers stay in the call. */
static int read_shared(sf_call *call, mujoco_call *in, sf_mujoco *w) {
    return sf_read(call, INT((*in), n, 1, 1 << 24), INT((*in), threads, 0, 1 << 10), TEXT(*in, name), INT(w->env, obs_size, 1, 1 << 20),
                   INT(w->env, max_episode_steps, 0, INT32_MAX), INT(*w, nq, 1, 1 << 16), INT(*w, nv, 1, 1 << 16),
                   INT(*w, nu, 1, SF_MAX_TERMS), INT(*w, nbody, 1, SF_MAX_TERMS / 6), INT(*w, frame_skip, 1, 1 << 16),
                   INT(*w, pieces, 1, 64), INT(*w, fused, 0, 1)) &&
           sf_read(call, INPUT(*in, functions, SF_U64, 6), INT(*w, body, 0, w->nbody - 1), INT(*w, other, 0, w->nbody - 1),
                   INT(*w, target, 0, w->nbody - 1)) &&
           sf_read(call, DOUBLE(*w, dt), DOUBLE(*w, timestep), DOUBLE(*w, total_mass), DOUBLE(*w, reset_noise_scale), DOUBLE(*w, healthy_reward),
                   DOUBLE(*w, state_limit), DOUBLE(*w, z_low), DOUBLE(*w, z_high), DOUBLE(*w, angle_low), DOUBLE(*w, angle_high),
                   DOUBLE(*w, forward_reward_weight), DOUBLE(*w, ctrl_cost_weight), DOUBLE(*w, contact_cost_weight),
                   DOUBLE(*w, force_low), DOUBLE(*w, force_high), DOUBLE(*w, cost_high), DOUBLE(*w, near_weight),
                   DOUBLE(*w, dist_weight)) &&
           sf_read(call, INPUT(*w, init_qpos, SF_F64, w->nq), INPUT(*w, init_qvel, SF_F64, w->nv), INPUT(*w, body_mass, SF_F64, w->nbody),
                   INPUT(*w, piece, SF_I64, 5 * (int64_t)w->pieces), INPUT(*in, lengths, SF_I64, SF_ARRAYS),
                   INPUT(*in, low, SF_F32, w->nu), INPUT(*in, high, SF_F32, w->nu)) &&
           sf_end(call);
}

/* The addresses are those of functions that Python has looked up by name, in the order of `FUNCTIONS` in envs/gym/mujoco.py. */
static void set_functions(sf_mujoco *w, const uint64_t *address) {
    void *const to[] = {&w->mj_step, &w->mj_forward, &w->mj_resetData, &w->mj_rnePostConstraint, &w->random_uniform, &w->random_standard_normal};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) memcpy(to[i], &(uintptr_t){(uintptr_t)address[i]}, sizeof(uintptr_t));
}

/* mujoco_new(*, n, threads, name, functions [6], the members of sf_mujoco, piece [pieces][5], lengths of the arrays, low, high) →
 * streams, which cannot be stepped before `mujoco_point`. */
static PyObject *mujoco_new(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    mujoco_call in = {0};
    SF_CALL(call);
    held_mujoco *held = calloc(1, sizeof *held);
    if (!held) return PyErr_NoMemory();
    sf_mujoco *w = &held->shared;
    if (!sf_begin(&call, "mujoco_new", args, count, names, 0) || !read_shared(&call, &in, w) || !(w->task = task_called(in.name)) ||
        !pieces_fit(w, in.lengths)) {
        free(held);
        return NULL;
    }
    set_functions(w, in.functions);
    w->env = (surefoot_env){.version = SUREFOOT_ENV_VERSION, .name = w->task->name, .state_size = sizeof(sf_simulation) / sizeof(double),
                            .obs_size = w->env.obs_size, .action_size = w->nu, .action_low = in.low, .action_high = in.high,
                            .max_episode_steps = w->env.max_episode_steps, .start = sf_mujoco_start, .step = sf_mujoco_step,
                            .observe = sf_mujoco_observe};
    sf_streams *streams = sf_streams_new(&w->env, in.n);
    if (!streams) {
        free(held);
        return PyErr_NoMemory();
    }
    held->views = call.views;
    call.views.count = 0; /* `release` releases them */
    streams->owned = held;
    streams->release = release;
    streams->empty = 1;
    if (!in.threads || (streams->pool = sf_pool_new(in.threads))) return sf_streams_capsule(streams);
    sf_streams_free(streams);
    return PyErr_Format(PyExc_OSError, "%d threads could not be started", in.threads);
}

/* mujoco_point(streams, addresses, elapsed, alive): set the addresses of each stream, [n][3 + SF_ARRAYS]: mjModel, mjData,
 * bitgen_t and the arrays; and the steps taken in its episode [n]. The dict `alive` holds what the addresses belong to. */
static PyObject *mujoco_point(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    mujoco_call in = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "mujoco_point", args, count, NULL, 4) || !sf_read(&call, CAPSULE(in, streams, SF_STREAMS_CAPSULE))) return NULL;
    sf_streams *s = in.streams;
    if (s->release != release) return PyErr_Format(PyExc_ValueError, "%s has no mjData", s->env->name);
    if (!PyDict_Check(args[3])) return PyErr_Format(PyExc_TypeError, "alive must be a dict");
    if (!sf_read(&call, INPUT(in, addresses, SF_U64, (int64_t)s->n * (3 + SF_ARRAYS)), INPUT(in, elapsed, SF_I64, s->n)) ||
        (!s->empty && !sf_streams_are_free(s)))
        return NULL;
    held_mujoco *held = s->owned;
    for (int i = 0; i < s->n; i++) {
        const uint64_t *address = in.addresses + (size_t)i * (3 + SF_ARRAYS);
        sf_simulation *simulation = (sf_simulation *)(s->state + (size_t)i * (size_t)s->env->state_size);
        *simulation = (sf_simulation){.shared = &held->shared, .model = (void *)(uintptr_t)address[0], .data = (void *)(uintptr_t)address[1],
                                      .random = (void *)(uintptr_t)address[2]};
        for (int k = 0; k < SF_ARRAYS; k++) simulation->array[k] = (double *)(uintptr_t)address[3 + k];
    }
    memcpy(s->elapsed, in.elapsed, (size_t)s->n * sizeof *s->elapsed);
    PyObject *before = held->alive;
    held->alive = Py_NewRef(args[3]);
    Py_XDECREF(before);
    s->empty = 0;
    Py_RETURN_NONE;
}

PyMethodDef sf_mujoco_methods[] = {SF_KEYWORDS(mujoco_new), SF_POSITIONAL(mujoco_point), {NULL, NULL, 0, NULL}};
