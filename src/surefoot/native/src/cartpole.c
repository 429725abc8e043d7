/* CartPole-v0 and CartPole-v1. envs/builtin/cartpole.py is the definition: operations have its order and precision, and this
 * file is built without fused multiply-adds. The state is position, velocity, angle, angular velocity. */
#include "streams.h"
#include <math.h>

#define PI 3.14159265358979323846

static const double TOTAL_MASS = 1.0 + 0.1, POLE_MASS = 0.1, HALF_LENGTH = 0.5, POLE_MOMENT = 0.1 * 0.5, TAU = 0.02;
static const double EDGE = 2.4, LEAN = 12 * 2 * PI / 360;

static void cartpole_start(double *state, int n, surefoot_rng *rng) { sf_uniform_row(state, 4 * n, 0.05, rng); }

static int cartpole_step(double *state, int64_t choice, const float *action, double *reward, surefoot_rng *rng) {
    const double x_dot = state[1], theta_dot = state[3];
    const double cosine = cos(state[2]), sine = sin(state[2]);
    const double push = ((choice ? 10.0 : -10.0) + POLE_MOMENT * (theta_dot * theta_dot) * sine) / TOTAL_MASS;
    const double theta_acc = (9.8 * sine - cosine * push) /
                             (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cosine * cosine) / TOTAL_MASS));
    const double x_acc = push - POLE_MOMENT * theta_acc * cosine / TOTAL_MASS;
    state[0] += TAU * x_dot;
    state[1] += TAU * x_acc;
    state[2] += TAU * theta_dot;
    state[3] += TAU * theta_acc;
    *reward = 1.0;
    return (fabs(state[0]) > EDGE) | (fabs(state[2]) > LEAN);
}

static void cartpole_observe(const double *state, float *obs) {
    for (int k = 0; k < 4; k++) obs[k] = (float)state[k];
}

static const float CART_LOW[] = {(float)-(2 * 2.4), -INFINITY, (float)-(2 * (12 * 2 * PI / 360)), -INFINITY};
static const float CART_HIGH[] = {(float)(2 * 2.4), INFINITY, (float)(2 * (12 * 2 * PI / 360)), INFINITY};

#define CARTPOLE(id, steps)                                                                                             \
    {.version = SUREFOOT_ENV_VERSION, .name = id, .state_size = 4, .obs_size = 4, .obs_low = CART_LOW,                 \
     .obs_high = CART_HIGH, .choices = 2, .max_episode_steps = steps, .step = cartpole_step,                          \
     .observe = cartpole_observe, .start_many = cartpole_start}

const surefoot_env sf_cartpole[2] = {CARTPOLE("CartPole-v0", 200), CARTPOLE("CartPole-v1", 500)};
