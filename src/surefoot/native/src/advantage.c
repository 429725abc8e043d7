/* Generalised advantage estimation. core/advantage.py is the definition. */
#include "advantage.h"

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
