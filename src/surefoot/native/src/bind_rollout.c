/* Rollouts for Python: their memory, and one call per rollout of a built-in environment. bind_steps.c has the calls per step. */
#include "binding.h"
#include "network.h"
#include "bind_rollout.h"

/* A rollout and the arrays that it writes to, which stay exported for as long as the capsule lives. */
typedef struct {
    sf_rollout rollout; /* the first member: the capsule's pointer is its address */
    sf_views views;
} held_rollout;

static void free_rollout(PyObject *capsule) {
    held_rollout *held = PyCapsule_GetPointer(capsule, SF_ROLLOUT_CAPSULE);
    sf_release(&held->views);
    free(held);
}

/* rollout_new(net, *, the members of sf_rollout but those of the network) */
static PyObject *rollout_new(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sf_rollout_call in = {0};
    sf_rollout r = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "rollout_new", args, count, names, 1) ||
        !sf_read(&call, CAPSULE(in, net, SF_NET_CAPSULE), INT(r, steps, 1, SF_MAX_ROWS), INT(r, streams, 1, 1 << 24)) ||
        !sf_net_is_free(in.net))
        return NULL;
    r.inputs = in.net->inputs;
    r.options = in.net->options;
    r.head = in.net->head;
    const sf_type type = in.net->numbers ? SF_F32 : SF_I64;
    const int64_t n = (int64_t)r.steps * r.streams, width = sf_action_width(in.net);
    r.action_bytes = (int64_t)sf_action_bytes(in.net);
    if (n > PY_SSIZE_T_MAX / ((r.inputs + r.options + width) * (int64_t)sizeof(double))) return PyErr_NoMemory();
    if (!sf_read(&call, OUTPUT_OR_NONE(r, obs, SF_F32, n * r.inputs), OUTPUT_OR_NONE(r, mask, SF_BOOL, n * r.options),
                 OUTPUT(r, action, type, n * width), OUTPUT(r, env_action, type, n * width), OUTPUT(r, log_prob, SF_F32, n),
                 OUTPUT(r, value, SF_F32, n), OUTPUT(r, next_value, SF_F32, n), OUTPUT(r, reward, SF_F64, n),
                 OUTPUT(r, terminated, SF_BOOL, n), OUTPUT(r, truncated, SF_BOOL, n), OUTPUT(r, start, SF_BOOL, n),
                 OUTPUT(r, valid, SF_BOOL, n)))
        return NULL;
    r.carried = in.net->memories ? in.net->memory[0].carried : 0;
    if (!sf_read_carry(&call, in.net, r.streams, r.carry) || !sf_end(&call)) return NULL;
    held_rollout *held = malloc(sizeof *held);
    if (!held || !sf_net_reserve_noise(in.net, r.streams)) {
        free(held);
        return PyErr_NoMemory();
    }
    held->rollout = r;
    PyObject *capsule = PyCapsule_New(held, SF_ROLLOUT_CAPSULE, free_rollout);
    if (!capsule) {
        free(held);
        return NULL;
    }
    held->views = call.views;
    call.views.count = 0; /* the capsule releases them */
    return capsule;
}

int sf_read_pair(sf_call *call, sf_rollout_call *in) {
    if (!sf_read(call, CAPSULE(*in, net, SF_NET_CAPSULE), CAPSULE(*in, rollout, SF_ROLLOUT_CAPSULE))) return 0;
    const sf_net *net = in->net;
    const sf_rollout *r = in->rollout;
    if (!sf_net_is_ready(net)) return 0;
    if ((r->head != SF_GSDE || r->streams <= net->noise_streams) && r->inputs == net->inputs && r->options == net->options && r->head == net->head &&
        r->carried == (net->memories ? net->memory[0].carried : 0) && (net->memories < 2 || r->carry[1]) &&
        r->action_bytes == (int64_t)sf_action_bytes(net))
        return 1;
    PyErr_SetString(PyExc_ValueError, "the rollout was made for another network");
    return 0;
}

static int world_fits(const sf_rollout_call *in) {
    const sf_net *net = in->net;
    const surefoot_env *env = in->streams->env;
    const int discrete = net->choices == 1 && !net->numbers && net->sizes[0] == env->choices && net->first_option == 0;
    const int continuous = !net->choices && !env->choices && env->action_size == net->numbers;
    if (in->streams->n == in->rollout->streams && env->obs_size == net->inputs && !in->rollout->mask && in->rollout->obs &&
        (discrete || continuous))
        return 1;
    PyErr_SetString(PyExc_ValueError, "the world, the network and the rollout do not fit each other");
    return 0;
}

/* rollout_collect(net, rollout, rng, streams, *, deterministic, obs, start, returns, lengths, ended) → (how many episodes ended, or -1 - t if
 * step t held a non-finite number; seconds spent in the environment). `obs` and `start` are updated. */
static PyObject *rollout_collect(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sf_rollout_call in = {0};
    sf_collection c = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "rollout_collect", args, count, names, 4) || !sf_read_pair(&call, &in) ||
        !sf_read(&call, OUTPUT(in, rng, SF_U64, 4), CAPSULE(in, streams, SF_STREAMS_CAPSULE)) || !sf_streams_are_free(in.streams) ||
        !world_fits(&in))
        return NULL;
    const int64_t n = in.rollout->streams;
    if (!sf_read(&call, INT(c, deterministic, 0, 1)) || !sf_read(&call, OUTPUT(c, obs, SF_F32, n * in.net->inputs), OUTPUT(c, start, SF_BOOL, n), OUTPUT(c, returns, SF_F64, n),
                 OUTPUT(c, lengths, SF_I64, n), OUTPUT(c, ended, SF_F64, in.rollout->steps * n * 4)) ||
        !sf_end(&call))
        return NULL;
    int done;
    in.net->busy = in.streams->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    done = sf_rollout_collect(in.net, in.rng, in.rollout, in.streams, &c);
    Py_END_ALLOW_THREADS
    in.net->busy = in.streams->busy = 0;
    if (!done) return PyErr_NoMemory();
    return Py_BuildValue("(Ld)", (long long)(c.bad_step < 0 ? c.episodes : -1 - c.bad_step), c.seconds);
}

PyMethodDef sf_rollout_methods[] = {SF_KEYWORDS(rollout_new), SF_KEYWORDS(rollout_collect), {NULL, NULL, 0, NULL}};
