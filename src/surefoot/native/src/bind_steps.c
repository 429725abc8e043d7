/* Rollouts of any environment for Python: one call to act and one to record per step. */
#include "binding.h"
#include "bind_rollout.h"

static int read_t(sf_call *call, sf_rollout_call *in) {
    if (!sf_read(call, LONG(*in, t, INT64_MIN, INT64_MAX))) return 0;
    if (in->t >= 0 && in->t < in->rollout->steps) return 1;
    PyErr_Format(PyExc_IndexError, "step %lld of a rollout of %d", (long long)in->t, in->rollout->steps);
    return 0;
}

/* rollout_act(net, rollout, rng, t, obs, mask): sample actions for all streams and write them as step t. */
static PyObject *rollout_act(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    sf_rollout_call in = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "rollout_act", args, count, NULL, 6) || !sf_read_pair(&call, &in)) return NULL;
    const int64_t n = in.rollout->streams;
    if (!sf_read(&call, OUTPUT(in, rng, SF_U64, 4)) || !read_t(&call, &in) ||
        !sf_read(&call, INPUT(in, obs, SF_F32, n * in.net->inputs), INPUT_OR_NONE(in, mask, SF_BOOL, n * in.net->options)))
        return NULL;
    if (!in.mask != !in.rollout->mask) {
        PyErr_SetString(PyExc_ValueError, "a rollout has masks at every step or at none");
        return NULL;
    }
    sf_rollout_act(in.net, in.rng, in.rollout, in.t, in.obs, in.mask, 0);
    Py_RETURN_NONE;
}

/* rollout_record(rollout, t, obs, reward, terminated, truncated, valid, returns, lengths) → RECORDED, EPISODE_ENDED, or
 * NON_FINITE if nothing was written. `obs` follows the step; None if the caller has checked it. */
static PyObject *rollout_record(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    sf_rollout_call in = {0};
    sf_step step = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "rollout_record", args, count, NULL, 9) || !sf_read(&call, CAPSULE(in, rollout, SF_ROLLOUT_CAPSULE)) ||
        !read_t(&call, &in))
        return NULL;
    const int64_t n = in.rollout->streams, numbers = n * in.rollout->inputs;
    if (!sf_read(&call, INPUT_OR_NONE(in, obs, SF_F32, numbers), INPUT(step, reward, SF_F64, n), INPUT(step, terminated, SF_BOOL, n), INPUT(step, truncated, SF_BOOL, n),
                 INPUT(step, valid, SF_BOOL, n), OUTPUT(step, returns, SF_F64, n), OUTPUT(step, lengths, SF_I64, n)))
        return NULL;
    for (int i = in.obs != NULL; i < call.views.count; i++) /* Python's side indexes the flags by stream too */
        if (call.views.view[i].ndim != 1) return PyErr_Format(PyExc_ValueError, "a step has rows of %lld numbers", (long long)n);
    if (in.obs && !sf_all_finite(in.obs, numbers)) return PyLong_FromLong(SF_NON_FINITE);
    return PyLong_FromLong(sf_rollout_record(in.rollout, in.t, &step));
}

/* rollout_finish(net, rollout, obs): fill in values and next_value; `obs` follows the last step. */
static PyObject *rollout_finish(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    sf_rollout_call in = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "rollout_finish", args, count, NULL, 3) || !sf_read_pair(&call, &in) ||
        !sf_read(&call, INPUT(in, obs, SF_F32, (int64_t)in.rollout->streams * in.net->inputs)))
        return NULL;
    sf_rollout_finish(in.net, in.rollout, in.obs);
    Py_RETURN_NONE;
}

PyMethodDef sf_step_methods[] = {
    SF_POSITIONAL(rollout_act), SF_POSITIONAL(rollout_record), SF_POSITIONAL(rollout_finish), {NULL, NULL, 0, NULL}};
