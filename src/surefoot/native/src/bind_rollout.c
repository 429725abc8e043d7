/* Rollouts for Python: two calls per step for any environment, one call per rollout for a built-in one. */
#include "binding.h"
#include "network.h"
#include "rollout.h"

#define ROLLOUT_CAPSULE "surefoot.rollout"

typedef struct {
    sf_net *net;
    sf_rollout *rollout;
    sf_streams *streams;
    sf_rng *rng;
    int64_t t;
    const float *obs;
    const uint8_t *mask;
} rollout_call;

static void free_rollout(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, ROLLOUT_CAPSULE)); }

/* rollout_new(net, *, the members of sf_rollout but those of the network): arrays that the caller keeps alive. */
static PyObject *rollout_new(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    rollout_call in = {0};
    sf_rollout r = {0};
    sf_call call;
    if (!sf_begin(&call, "rollout_new", args, count, names, 1) ||
        !sf_read(&call, CAPSULE(in, net, SF_NET_CAPSULE), INT(r, steps, 1, SF_MAX_ROWS), INT(r, streams, 1, 1 << 24)))
        return NULL;
    r.inputs = in.net->inputs;
    r.outputs = in.net->outputs;
    r.head = in.net->head;
    const sf_type type = r.head == SF_CATEGORICAL ? SF_I64 : SF_F32;
    const int64_t n = (int64_t)r.steps * r.streams, width = sf_action_width(in.net);
    r.action_bytes = width * (r.head == SF_CATEGORICAL ? (int64_t)sizeof(int64_t) : (int64_t)sizeof(float));
    if (n > PY_SSIZE_T_MAX / ((r.inputs + r.outputs) * (int64_t)sizeof(double))) return PyErr_NoMemory();
    if (!sf_read(&call, OUTPUT_OR_NONE(r, obs, SF_F32, n * r.inputs), OUTPUT_OR_NONE(r, mask, SF_BOOL, n * r.outputs),
                 OUTPUT(r, action, type, n * width), OUTPUT(r, env_action, type, n * width), OUTPUT(r, log_prob, SF_F32, n),
                 OUTPUT(r, value, SF_F32, n), OUTPUT(r, next_value, SF_F32, n), OUTPUT(r, reward, SF_F64, n),
                 OUTPUT(r, terminated, SF_BOOL, n), OUTPUT(r, truncated, SF_BOOL, n), OUTPUT(r, start, SF_BOOL, n),
                 OUTPUT(r, valid, SF_BOOL, n)) ||
        !sf_end(&call))
        return NULL;
    sf_rollout *rollout = malloc(sizeof *rollout);
    if (!rollout) return PyErr_NoMemory();
    *rollout = r;
    PyObject *capsule = PyCapsule_New(rollout, ROLLOUT_CAPSULE, free_rollout);
    if (!capsule) free(rollout);
    return capsule;
}

/* Read the network and the rollout that begin a call; 1 if they fit each other. */
static int read_pair(sf_call *call, rollout_call *in) {
    if (!sf_read(call, CAPSULE(*in, net, SF_NET_CAPSULE), CAPSULE(*in, rollout, ROLLOUT_CAPSULE))) return 0;
    const sf_net *net = in->net;
    const sf_rollout *r = in->rollout;
    if (!sf_net_is_ready(net)) return 0;
    if (r->inputs == net->inputs && r->outputs == net->outputs && r->head == net->head &&
        r->action_bytes == sf_action_width(net) * (r->head == SF_CATEGORICAL ? 8 : 4))
        return 1;
    PyErr_SetString(PyExc_ValueError, "the rollout was made for another network");
    return 0;
}

static int read_t(sf_call *call, rollout_call *in) {
    if (!sf_read(call, LONG(*in, t, INT64_MIN, INT64_MAX))) return 0;
    if (in->t >= 0 && in->t < in->rollout->steps) return 1;
    PyErr_Format(PyExc_IndexError, "step %lld of a rollout of %d", (long long)in->t, in->rollout->steps);
    return 0;
}

/* rollout_act(net, rollout, rng, t, obs, mask): sample actions for all streams and write them as step t. */
static PyObject *rollout_act(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    rollout_call in = {0};
    sf_call call;
    if (!sf_begin(&call, "rollout_act", args, count, NULL, 6) || !read_pair(&call, &in)) return NULL;
    const int64_t n = in.rollout->streams;
    if (!sf_read(&call, OUTPUT(in, rng, SF_U64, 4)) || !read_t(&call, &in) ||
        !sf_read(&call, INPUT(in, obs, SF_F32, n * in.net->inputs), INPUT_OR_NONE(in, mask, SF_BOOL, n * in.net->outputs)))
        return NULL;
    if (!in.mask != !in.rollout->mask) {
        PyErr_SetString(PyExc_ValueError, "a rollout has masks at every step or at none");
        return NULL;
    }
    sf_rollout_act(in.net, in.rng, in.rollout, in.t, in.obs, in.mask);
    Py_RETURN_NONE;
}

/* rollout_record(rollout, t, obs, reward, terminated, truncated, valid, returns, lengths) → RECORDED, EPISODE_ENDED, or
 * NON_FINITE if nothing was written. `obs` follows the step; None if the caller has checked it. */
static PyObject *rollout_record(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    rollout_call in = {0};
    sf_step step = {0};
    sf_call call;
    if (!sf_begin(&call, "rollout_record", args, count, NULL, 9) || !sf_read(&call, CAPSULE(in, rollout, ROLLOUT_CAPSULE)) ||
        !read_t(&call, &in))
        return NULL;
    if (args[2] != Py_None) {
        Py_buffer view;
        if (PyObject_GetBuffer(args[2], &view, PyBUF_SIMPLE) < 0) return NULL;
        const int finite = sf_all_finite(view.buf, view.len / (Py_ssize_t)sizeof(float));
        PyBuffer_Release(&view);
        if (!finite) return PyLong_FromLong(SF_NON_FINITE);
    }
    call.next = 3;
    const int64_t n = in.rollout->streams;
    if (!sf_read(&call, INPUT(step, reward, SF_F64, n), INPUT(step, terminated, SF_BOOL, n), INPUT(step, truncated, SF_BOOL, n),
                 INPUT(step, valid, SF_BOOL, n), OUTPUT(step, returns, SF_F64, n), OUTPUT(step, lengths, SF_I64, n)))
        return NULL;
    return PyLong_FromLong(sf_rollout_record(in.rollout, in.t, &step));
}

/* rollout_finish(net, rollout, obs): fill in values and next_value; `obs` follows the last step. */
static PyObject *rollout_finish(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    rollout_call in = {0};
    sf_call call;
    if (!sf_begin(&call, "rollout_finish", args, count, NULL, 3) || !read_pair(&call, &in) ||
        !sf_read(&call, INPUT(in, obs, SF_F32, (int64_t)in.rollout->streams * in.net->inputs)))
        return NULL;
    sf_rollout_finish(in.net, in.rollout, in.obs);
    Py_RETURN_NONE;
}

static int world_fits(const rollout_call *in) {
    const sf_net *net = in->net;
    const surefoot_env *env = in->streams->env;
    const int discrete = net->choices == 1 && net->sizes[0] == env->choices && net->first_option == 0;
    const int continuous = !env->choices && env->action_size == net->outputs;
    if (in->streams->n == in->rollout->streams && env->obs_size == net->inputs && !in->rollout->mask && in->rollout->obs &&
        (net->head == SF_CATEGORICAL ? discrete : continuous))
        return 1;
    PyErr_SetString(PyExc_ValueError, "the world, the network and the rollout do not fit each other");
    return 0;
}

/* rollout_collect(net, rollout, rng, streams, *, obs, start, returns, lengths, ended) → (how many episodes ended, or -1 - t if
 * step t held a non-finite number; seconds spent in the environment). `obs` and `start` are updated. */
static PyObject *rollout_collect(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    rollout_call in = {0};
    sf_collection c = {0};
    sf_call call;
    if (!sf_begin(&call, "rollout_collect", args, count, names, 4) || !read_pair(&call, &in) ||
        !sf_read(&call, OUTPUT(in, rng, SF_U64, 4), CAPSULE(in, streams, SF_STREAMS_CAPSULE)) || !world_fits(&in))
        return NULL;
    const int64_t n = in.rollout->streams;
    if (!sf_read(&call, OUTPUT(c, obs, SF_F32, n * in.net->inputs), OUTPUT(c, start, SF_BOOL, n), OUTPUT(c, returns, SF_F64, n),
                 OUTPUT(c, lengths, SF_I64, n), OUTPUT(c, ended, SF_F64, in.rollout->steps * n * 4)) ||
        !sf_end(&call))
        return NULL;
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = sf_rollout_collect(in.net, in.rng, in.rollout, in.streams, &c);
    Py_END_ALLOW_THREADS
    if (!done) return PyErr_NoMemory();
    return Py_BuildValue("(Ld)", (long long)(c.bad_step < 0 ? c.episodes : -1 - c.bad_step), c.seconds);
}

PyMethodDef sf_rollout_methods[] = {SF_KEYWORDS(rollout_new),    SF_POSITIONAL(rollout_act),   SF_POSITIONAL(rollout_record),
                                    SF_POSITIONAL(rollout_finish), SF_KEYWORDS(rollout_collect), {NULL, NULL, 0, NULL}};
