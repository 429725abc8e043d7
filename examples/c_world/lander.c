/* Land a small craft: softly, upright by nature, on a pad that is one unit wide to each side of x = 0.
 *
 *     cc -O2 -shared -fPIC -I "$(surefoot include)" lander.c -o lander.so -lm
 *     surefoot train ./lander.so --steps 100_000
 */
#include <math.h>
#include <surefoot_env.h>

enum { X, Y, VX, VY, SIZE }; /* a stream's whole state; y is the height */
enum { COAST, UP, LEFT, RIGHT, CHOICES };

static const double DT = 0.1, GRAVITY = 1.0, MAIN = 2.5, SIDE = 1.0;

static void start(double *state, surefoot_rng *rng) {
    state[X] = surefoot_uniform(rng, -4.0, 4.0);
    state[Y] = surefoot_uniform(rng, 5.0, 8.0);
    state[VX] = surefoot_uniform(rng, -0.5, 0.5);
    state[VY] = surefoot_uniform(rng, -1.0, 0.0);
}

/* How far from standing on the pad: each step's progress is paid immediately, so that there is a slope to follow. */
static double trouble(const double *state) {
    return hypot(state[X], state[Y]) + hypot(state[VX], state[VY]);
}

static int step(double *state, int64_t choice, const float *action, double *reward, surefoot_rng *rng) {
    (void)action;
    (void)rng;
    const double before = trouble(state);
    state[VX] += DT * (choice == RIGHT ? SIDE : choice == LEFT ? -SIDE : 0.0);
    state[VY] += DT * ((choice == UP ? MAIN : 0.0) - GRAVITY);
    state[X] += DT * state[VX];
    state[Y] += DT * state[VY];
    *reward = before - trouble(state) - (choice == COAST ? 0.0 : 0.01); /* fuel */
    if (fabs(state[X]) > 10.0 || state[Y] > 12.0) {                     /* lost in space */
        *reward -= 10.0;
        return 1;
    }
    if (state[Y] > 0.0) return 0;
    *reward += fabs(state[X]) < 1.0 && hypot(state[VX], state[VY]) < 1.0 ? 10.0 : -10.0;
    return 1;
}

static void observe(const double *state, float *obs) {
    for (int k = 0; k < SIZE; k++) obs[k] = (float)(state[k] / (k < VX ? 5.0 : 2.0));
}

static const surefoot_env LANDER = {
    .version = SUREFOOT_ENV_VERSION,
    .name = "Lander",
    .state_size = SIZE,
    .obs_size = SIZE,
    .choices = CHOICES,
    .max_episode_steps = 300,
    .start = start,
    .step = step,
    .observe = observe,
};

const surefoot_env *surefoot_env_main(void) { return &LANDER; }
