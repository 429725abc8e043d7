/* Recording a step that an environment in Python has made. */
#include "rollout.h"

int sf_rollout_record(sf_rollout *rollout, int64_t t, const sf_step *step) {
    const int64_t n = rollout->streams, at = t * n;
    int ended = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!sf_is_finite_reward(step->reward[i])) return SF_NON_FINITE;
        ended |= step->terminated[i] | step->truncated[i];
    }
    memcpy(rollout->reward + at, step->reward, n * sizeof(double));
    memcpy(rollout->terminated + at, step->terminated, n);
    memcpy(rollout->truncated + at, step->truncated, n);
    memcpy(rollout->valid + at, step->valid, n);
    for (int64_t i = 0; i < n; i++) {
        /* An invalid row drops the running episode: its worker was lost. */
        step->returns[i] = step->valid[i] ? step->returns[i] + step->reward[i] : 0.0;
        step->lengths[i] = step->valid[i] ? step->lengths[i] + 1 : 0;
    }
    if (t + 1 < rollout->steps)
        for (int64_t i = 0; i < n; i++)
            rollout->start[at + n + i] = step->terminated[i] | step->truncated[i] | !step->valid[i];
    return ended ? SF_EPISODE_ENDED : SF_RECORDED;
}
