/* Checks of a user's `surefoot_env` before it is run. */
#include "binding.h"
#include "streams.h"
#include <math.h>

#define MOST_NUMBERS (1 << 20) /* per state, observation or action */

static void refuse_null(const char *what, const char *instead) {
    PyErr_Format(PyExc_ValueError, "%s is NULL; %s", what, instead);
}

static int size_is_valid(const char *what, int size, int least) {
    if (size >= least && size <= MOST_NUMBERS) return 1;
    PyErr_Format(PyExc_ValueError, "%s is %d; it must be from %d to %d", what, size, least, MOST_NUMBERS);
    return 0;
}

static int bounds_are_valid(const char *what, const float *low, const float *high, int size) {
    for (int k = 0; k < size; k++) {
        const float lowest = low ? low[k] : -INFINITY, highest = high ? high[k] : INFINITY;
        if (lowest <= highest) continue;
        PyErr_Format(PyExc_ValueError, "%s_low[%d] is not below %s_high[%d]", what, k, what, k);
        return 0;
    }
    return 1;
}

/* The version comes first: nothing is known about the layout of another version. */
int sf_check_env(const surefoot_env *env) {
    if (env->version != SUREFOOT_ENV_VERSION) {
        PyErr_Format(PyExc_ValueError, "version is %d; this surefoot knows %d: build it again with this surefoot's header",
                     env->version, SUREFOOT_ENV_VERSION);
        return 0;
    }
    if (!env->name || !env->name[0]) {
        PyErr_SetString(PyExc_ValueError, "name is empty; runs and reports need one");
        return 0;
    }
    if (!size_is_valid("state_size", env->state_size, 1) || !size_is_valid("obs_size", env->obs_size, 1)) return 0;
    if (!size_is_valid("choices", env->choices, 0)) return 0;
    if (!size_is_valid("action_size", env->action_size, env->choices ? 0 : 1)) return 0;
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
    if (!bounds_are_valid("obs", env->obs_low, env->obs_high, env->obs_size)) return 0;
    if (!bounds_are_valid("action", env->action_low, env->action_high, env->action_size)) return 0;
    if (!env->step || !env->observe || !(env->start || env->start_many)) {
        refuse_null(!env->step ? "step" : !env->observe ? "observe" : "start", "a world cannot be run without it");
        return 0;
    }
    return 1;
}
