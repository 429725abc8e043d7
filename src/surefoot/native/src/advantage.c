/* Generalised advantage estimation and the statistics of a rollout that a report contains. core/advantage.py and
 * learn/describe.py are the definitions. */
#include "advantage.h"
#include <math.h>

/* δ_t = r_t + γ (1 - terminated_t) V(s_{t+1}) - V(s_t);  A_t = δ_t + γλ (1 - ended_t) A_{t+1};  target_t = A_t + V(s_t). */
void sf_gae(const sf_gae_arrays *a) {
    const float gamma = (float)a->gamma, carry = (float)(a->gamma * a->lam);
    const int64_t steps = a->steps, streams = a->streams;
    for (int64_t t = steps - 1; t >= 0; t--)
        for (int64_t n = 0; n < streams; n++) {
            const int64_t i = t * streams + n;
            const float after = t + 1 < steps ? a->advantage[i + streams] : 0.0f;
            float advantage = a->reward[i] + (a->terminated[i] ? 0.0f : gamma * a->next_value[i]) - a->value[i];
            if (!a->terminated[i] && !a->truncated[i]) advantage += carry * after;
            a->advantage[i] = a->valid[i] ? advantage : 0.0f;
            a->target[i] = a->advantage[i] + a->value[i];
        }
}

/* Two passes in double: means first, then centred moments. Spreads up to 1e-12 count as 0: nothing can be divided by them. */
sf_statistics sf_rollout_statistics(int64_t n, const float *reward, const float *value, const float *target) {
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
    return (sf_statistics){.advantage_mean = a,
                           .advantage_std = aa,
                           .reward_advantage_corr = corr < -1 ? -1 : corr > 1 ? 1 : corr,
                           .explained_variance = tt > 1e-12 ? 1 - aa / tt * (aa / tt) : 0.0,
                           .reward_mean = r,
                           .reward_std = rr,
                           .value_mean = v,
                           .target_mean = t,
                           .target_std = tt};
}
