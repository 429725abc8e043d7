/* The classic-control environments but CartPole (cartpole.c). The numpy versions in envs/builtin are the definition: operations
 * have their order and precision, and this file is built without fused multiply-adds and with the digits of the C library's pow. */
#include "streams.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
#define UNUSED(x) (void)(x)

/* NaN passes through, as it does through numpy's clip. */
static inline double clip(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
static inline float clipf(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/* pow(x, 2), digit by digit, in a third of the time. glibc's pow is within 0.54 units in the last place of the exact power. So where
 * x·x is within 0.45 units of it, no other number can be the result (the two halves of x give the error of x·x exactly). Below a power
 * of two units are smaller. */
static double square(double x) {
#ifdef __GLIBC__
    const double product = x * x, high = 134217729.0 * x - (134217729.0 * x - x), low = x - high;
    const double error = high * high - product + 2.0 * high * low + low * low;
    uint64_t bits;
    double power_of_two;
    memcpy(&bits, &product, sizeof bits);
    bits &= UINT64_C(0x7ff) << 52;
    memcpy(&power_of_two, &bits, sizeof bits);
    if (product > 1e-200 && product < 1e200 && product != power_of_two && fabs(error) < 0.45 * 0x1p-52 * power_of_two) return product;
#endif
    return pow(x, 2.0);
}

static void observe_all(const double *state, float *obs, int size) {
    for (int k = 0; k < size; k++) obs[k] = (float)state[k];
}

static void observe_two(const double *state, float *obs) { observe_all(state, obs, 2); }
static void observe_four(const double *state, float *obs) { observe_all(state, obs, 4); }

/* Isaac's cart pole, with a continuous push. */

static const double ISAAC_MASS = 1.0 + 1.0, ISAAC_MOMENT = 1.0 * 0.47, SUBSTEP = 0.0166 / 2;
static const double ISAAC_INERTIA = 1.0 / 12 * (0.06 * 0.06 + 1.0) + 0.47 * 0.47;

static void isaac_start(double *state, int n, surefoot_rng *rng) {
    sf_uniform_row(state, n, 0.1, rng);
    sf_uniform_row(state + n, n, 0.25, rng);
    sf_uniform_row(state + 2 * n, n, 0.1, rng);
    sf_uniform_row(state + 3 * n, n, 0.25, rng);
}

static int isaac_step(double *state, int64_t choice, const float *action, double *reward, surefoot_rng *rng) {
    UNUSED(choice);
    UNUSED(rng);
    const double force = 400.0 * (double)clipf(action[0], -1.0f, 1.0f);
    double x = state[0], x_dot = state[1], theta = state[2], theta_dot = state[3];
    for (int i = 0; i < 2; i++) {
        const double cosine = cos(theta), sine = sin(theta), lever = ISAAC_MOMENT * cosine;
        const double push = (force + ISAAC_MOMENT * (theta_dot * theta_dot) * sine) / ISAAC_MASS;
        const double theta_acc =
            (ISAAC_MOMENT * (9.81 * sine - push * cosine)) / (ISAAC_INERTIA - lever * lever / ISAAC_MASS);
        x_dot = x_dot + SUBSTEP * (push - ISAAC_MOMENT * theta_acc * cosine / ISAAC_MASS);
        theta_dot = clip(theta_dot + SUBSTEP * theta_acc, -8.0, 8.0);
        x = x + SUBSTEP * x_dot;
        theta = theta + SUBSTEP * theta_dot;
    }
    const int lost = (fabs(x) > 3.0) | (fabs(theta) > PI / 2);
    *reward = lost ? -2.0 : 1.0 - theta * theta - 0.01 * fabs(x_dot) - 0.005 * fabs(theta_dot);
    state[0] = x;
    state[1] = x_dot;
    state[2] = theta;
    state[3] = theta_dot;
    return lost;
}

/* Mountain cars: position, velocity. */

static void hill_start(double *state, int n, surefoot_rng *rng) {
    for (int i = 0; i < n; i++) state[i] = surefoot_uniform(rng, -0.6, -0.4);
    for (int i = 0; i < n; i++) state[n + i] = 0.0;
}

static int hill_step(double *state, int64_t choice, const float *action, double *reward, surefoot_rng *rng) {
    UNUSED(action);
    UNUSED(rng);
    const double pedal = (double)(choice - 1) * 0.001;
    double velocity = clip(state[1] + (pedal + cos(3.0 * state[0]) * -0.0025), -0.07, 0.07);
    const double position = clip(state[0] + velocity, -1.2, 0.6);
    if ((position == -1.2) & (velocity < 0)) velocity = 0.0;
    state[0] = position;
    state[1] = velocity;
    *reward = -1.0;
    return (position >= 0.5) & (velocity >= 0);
}

/* The continuous car computes in float32 except for its cosine; its doubles hold float32 numbers. */

static void hill_continuous_start(double *state, int n, surefoot_rng *rng) {
    hill_start(state, n, rng);
    for (int i = 0; i < n; i++) state[i] = (double)(float)state[i];
}

static int hill_continuous_step(double *state, int64_t choice, const float *action, double *reward, surefoot_rng *rng) {
    UNUSED(choice);
    UNUSED(rng);
    const float pedal = action[0], before = (float)state[0];
    const float slope = (float)(0.0025 * cos((double)(3.0f * before)));
    float velocity = (float)state[1] + (clipf(pedal, -1.0f, 1.0f) * 0.0015f - slope);
    velocity = clipf(velocity, -0.07f, 0.07f);
    const float position = clipf(before + velocity, -1.2f, 0.6f);
    if ((position == -1.2f) & (velocity < 0)) velocity = 0.0f;
    const int arrived = (position >= 0.45f) & (velocity >= 0);
    state[0] = (double)position;
    state[1] = (double)velocity;
    *reward = 100.0 * arrived - (double)pedal * (double)pedal * 0.1;
    return arrived;
}

/* Pendulum: angle, velocity. Its torque is float32, all else float64. */

static void pendulum_start(double *state, int n, surefoot_rng *rng) {
    sf_uniform_row(state, n, PI, rng);
    sf_uniform_row(state + n, n, 1.0, rng);
}

/* Python's %, for a positive b. */
static double floored(double a, double b) {
    const double rest = fmod(a, b);
    if (rest == 0.0) return 0.0;
    return rest < 0.0 ? rest + b : rest;
}

static int pendulum_step(double *state, int64_t choice, const float *action, double *reward, surefoot_rng *rng) {
    UNUSED(choice);
    UNUSED(rng);
    const double theta = state[0];
    double theta_dot = state[1];
    const float torque = clipf(action[0], -2.0f, 2.0f);
    const double upright = floored(theta + PI, 2 * PI) - PI;
    const double cost = square(upright) + 0.1 * square(theta_dot) + (double)(0.001f * powf(torque, 2.0f));
    theta_dot = theta_dot + (15.0 * sin(theta) + (double)(3.0f * torque)) * 0.05;
    theta_dot = clip(theta_dot, -8.0, 8.0);
    state[0] = theta + theta_dot * 0.05;
    state[1] = theta_dot;
    *reward = -cost;
    return 0;
}

static void pendulum_observe(const double *state, float *obs) {
    obs[0] = (float)cos(state[0]);
    obs[1] = (float)sin(state[0]);
    obs[2] = (float)state[1];
}

/* Acrobot: two angles, two velocities. */

static void acrobot_start(double *state, int n, surefoot_rng *rng) {
    sf_uniform_row(state, 4 * n, 0.1, rng);
    for (int i = 0; i < 4 * n; i++) state[i] = (double)(float)state[i];
}

static void acrobot_rates(const double *state, double torque, double *rate) {
    const double theta1 = state[0], theta2 = state[1], dtheta1 = state[2], dtheta2 = state[3];
    const double cos2 = cos(theta2), sin2 = sin(theta2);
    const double d1 = 0.25 + (1.25 + cos2) + 1.0 + 1.0;
    const double d2 = 0.25 + 0.5 * cos2 + 1.0;
    const double square1 = square(dtheta1), square2 = square(dtheta2);
    const double phi2 = 0.5 * 9.8 * cos(theta1 + theta2 - PI / 2);
    const double phi1 =
        -0.5 * square2 * sin2 - dtheta2 * dtheta1 * sin2 + (0.5 + 1.0) * 9.8 * cos(theta1 - PI / 2) + phi2;
    const double pull = torque + d2 / d1 * phi1 - 0.5 * square1 * sin2 - phi2;
    const double ddtheta2 = pull / (1.25 - square(d2) / d1);
    rate[0] = dtheta1;
    rate[1] = dtheta2;
    rate[2] = -(d2 * ddtheta2 + phi1) / d1;
    rate[3] = ddtheta2;
}

/* Into [-π, π] by whole turns. An angle so large that a turn is below its last digit stays. */
static double wrapped(double angle) {
    while (fabs(angle) > PI) {
        const double less = angle - copysign(2 * PI, angle);
        if (less == angle) break;
        angle = less;
    }
    return angle;
}

static int acrobot_step(double *state, int64_t choice, const float *action, double *reward, surefoot_rng *rng) {
    UNUSED(action);
    UNUSED(rng);
    const double torque = (double)(choice - 1), step = 0.2;
    double k1[4], k2[4], k3[4], k4[4], there[4];
    acrobot_rates(state, torque, k1);
    for (int k = 0; k < 4; k++) there[k] = state[k] + step / 2 * k1[k];
    acrobot_rates(there, torque, k2);
    for (int k = 0; k < 4; k++) there[k] = state[k] + step / 2 * k2[k];
    acrobot_rates(there, torque, k3);
    for (int k = 0; k < 4; k++) there[k] = state[k] + step * k3[k];
    acrobot_rates(there, torque, k4);
    for (int k = 0; k < 4; k++) state[k] = state[k] + step / 6 * (k1[k] + 2.0 * k2[k] + 2.0 * k3[k] + k4[k]);
    state[0] = wrapped(state[0]);
    state[1] = wrapped(state[1]);
    state[2] = clip(state[2], -4 * PI, 4 * PI);
    state[3] = clip(state[3], -9 * PI, 9 * PI);
    const int up = -cos(state[0]) - cos(state[1] + state[0]) > 1.0;
    *reward = up - 1.0;
    return up;
}

static void acrobot_observe(const double *state, float *obs) {
    obs[0] = (float)cos(state[0]);
    obs[1] = (float)sin(state[0]);
    obs[2] = (float)cos(state[1]);
    obs[3] = (float)sin(state[1]);
    obs[4] = (float)state[2];
    obs[5] = (float)state[3];
}

static const float ONE_LOW[] = {-1.0f}, ONE_HIGH[] = {1.0f}, TWO_LOW[] = {-2.0f}, TWO_HIGH[] = {2.0f};
static const float HILL_LOW[] = {-1.2f, -0.07f}, HILL_HIGH[] = {0.6f, 0.07f};
static const float LINK_LOW[] = {-1.0f, -1.0f, -8.0f}, LINK_HIGH[] = {1.0f, 1.0f, 8.0f};
static const float LINKS_LOW[] = {-1.0f, -1.0f, -1.0f, -1.0f, (float)(-4 * PI), (float)(-9 * PI)};
static const float LINKS_HIGH[] = {1.0f, 1.0f, 1.0f, 1.0f, (float)(4 * PI), (float)(9 * PI)};

#define DISCRETE(n) .choices = (n)
#define CONTINUOUS(low, high) .action_size = 1, .action_low = (low), .action_high = (high)
#define OBSERVED(size, low, high, how) .obs_size = (size), .obs_low = (low), .obs_high = (high), .observe = (how)

static const surefoot_env WORLDS[] = {
    {.version = SUREFOOT_ENV_VERSION, .name = "Acrobot-v1", .state_size = 4,
     OBSERVED(6, LINKS_LOW, LINKS_HIGH, acrobot_observe), DISCRETE(3), .max_episode_steps = 500, .step = acrobot_step,
     .start_many = acrobot_start},
    {.version = SUREFOOT_ENV_VERSION, .name = "MountainCar-v0", .state_size = 2, OBSERVED(2, HILL_LOW, HILL_HIGH, observe_two),
     DISCRETE(3), .max_episode_steps = 200, .step = hill_step, .start_many = hill_start},
    {.version = SUREFOOT_ENV_VERSION, .name = "MountainCarContinuous-v0", .state_size = 2,
     OBSERVED(2, HILL_LOW, HILL_HIGH, observe_two), CONTINUOUS(ONE_LOW, ONE_HIGH), .max_episode_steps = 999,
     .step = hill_continuous_step, .start_many = hill_continuous_start},
    {.version = SUREFOOT_ENV_VERSION, .name = "Pendulum-v1", .state_size = 2,
     OBSERVED(3, LINK_LOW, LINK_HIGH, pendulum_observe), CONTINUOUS(TWO_LOW, TWO_HIGH), .max_episode_steps = 200,
     .step = pendulum_step, .start_many = pendulum_start},
    {.version = SUREFOOT_ENV_VERSION, .name = "surefoot/CartPoleContinuous-v0", .state_size = 4,
     OBSERVED(4, NULL, NULL, observe_four), CONTINUOUS(ONE_LOW, ONE_HIGH), .max_episode_steps = 500, .step = isaac_step,
     .start_many = isaac_start},
};

const surefoot_env *sf_classic(const char *name) {
    for (size_t i = 0; i < sizeof sf_cartpole / sizeof *sf_cartpole; i++)
        if (strcmp(sf_cartpole[i].name, name) == 0) return sf_cartpole + i;
    for (size_t i = 0; i < sizeof WORLDS / sizeof *WORLDS; i++)
        if (strcmp(WORLDS[i].name, name) == 0) return WORLDS + i;
    return NULL;
}
