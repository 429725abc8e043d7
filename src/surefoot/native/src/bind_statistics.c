/* Statistics of a rollout for the report; no weight depends on them. `describe` in learn/report_builder.py is the definition. */
#include "binding.h"
#include "kernel.h"
#include <math.h>

typedef struct {
    double advantage_mean, advantage_std, reward_advantage_corr, explained_variance;
    double reward_mean, reward_std, value_mean, target_mean, target_std;
} statistics;

/* Two passes in double: means first, then centred moments. Spreads up to 1e-12 count as 0: nothing can be divided by them. */
static statistics measure(int64_t n, const float *reward, const float *value, const float *target) {
    double r = 0, v = 0, t = 0, rr = 0, tt = 0, aa = 0, ra = 0;
    for (int64_t i = 0; i < n; i++) {
        r += reward[i];
        v += value[i];
        t += target[i];
    }
    r /= n;
    v /= n;
    t /= n;
    const double a = t - v; /* advantage = target - value */
    for (int64_t i = 0; i < n; i++) {
        const double dr = reward[i] - r, dt = target[i] - t, da = (double)target[i] - value[i] - a;
        rr += dr * dr;
        tt += dt * dt;
        aa += da * da;
        ra += dr * da;
    }
    rr = sqrt(rr / n);
    tt = sqrt(tt / n);
    aa = sqrt(aa / n);
    const double scale = rr * aa, corr = scale > 1e-12 ? ra / n / scale : 0.0;
    return (statistics){.advantage_mean = a,
                           .advantage_std = aa,
                           .reward_advantage_corr = corr < -1 ? -1 : corr > 1 ? 1 : corr,
                           .explained_variance = tt > 1e-12 ? 1 - aa / tt * (aa / tt) : 0.0,
                           .reward_mean = r,
                           .reward_std = rr,
                           .value_mean = v,
                           .target_mean = t,
                           .target_std = tt};
}

/* rollout_statistics(n, reward, value, target) → the members of `statistics` by name */
static PyObject *rollout_statistics(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    struct {
        int64_t n;
        const float *reward, *value, *target;
    } in = {0};
    SF_CALL(call);
    if (!sf_begin(&call, "rollout_statistics", args, count, NULL, 4) || !sf_read(&call, LONG(in, n, 1, SF_MAX_ROWS)) ||
        !sf_read(&call, INPUT(in, reward, SF_F32, in.n), INPUT(in, value, SF_F32, in.n), INPUT(in, target, SF_F32, in.n)))
        return NULL;
    const statistics s = measure(in.n, in.reward, in.value, in.target);
#define NUMBER(member) #member, s.member
    return Py_BuildValue("{sdsdsdsdsdsdsdsdsd}", NUMBER(advantage_mean), NUMBER(advantage_std), NUMBER(reward_advantage_corr),
                         NUMBER(explained_variance), NUMBER(reward_mean), NUMBER(reward_std), NUMBER(value_mean),
                         NUMBER(target_mean), NUMBER(target_std));
#undef NUMBER
}

PyMethodDef sf_statistics_methods[] = {SF_POSITIONAL(rollout_statistics), {NULL, NULL, 0, NULL}};
