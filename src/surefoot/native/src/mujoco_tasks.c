/* Rewards, terminations and starts of Gymnasium's MuJoCo tasks (gymnasium.envs.mujoco), with their digits: operations are in the
 * order of numpy's, and the cost of float32 actions is a float32. */
#include "mujoco_tasks.h"

#include <math.h>
#include <string.h>

#define CLIP(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x)) /* NaN stays */

/* Σ x², in the order of numpy's pairwise sum: eight running sums, which end as ((0+1)+(2+3))+((4+5)+(6+7)), and the rest. */
#define SUM_OF_SQUARES(name, number)                                            \
    static number name(const number *x, int n, number low, number high) {       \
        number sum = 0, run[8] = {0};                                           \
        int i = 0;                                                              \
        for (; n >= 8 && i < n - n % 8; i++) {                                  \
            const number c = CLIP(x[i], low, high);                             \
            run[i % 8] += c * c;                                                \
        }                                                                       \
        sum = ((run[0] + run[1]) + (run[2] + run[3])) + ((run[4] + run[5]) + (run[6] + run[7])); \
        for (; i < n; i++) {                                                    \
            const number c = CLIP(x[i], low, high);                             \
            sum += c * c;                                                       \
        }                                                                       \
        return sum;                                                             \
    }
SUM_OF_SQUARES(squares_of_floats, float)
SUM_OF_SQUARES(squares, double)

static float action_cost(const sf_mujoco *w, const float *action) {
    return (float)w->ctrl_cost_weight * squares_of_floats(action, w->nu, -INFINITY, INFINITY);
}

/* numpy.linalg.norm, whose dot product is OpenBLAS's. */
static double norm(const sf_mujoco *w, const double *x, int n) {
    double sum = x[0] * x[0];
    for (int i = 1; i < n; i++) sum = w->fused ? fma(x[i], x[i], sum) : sum + x[i] * x[i];
    return sqrt(sum);
}

static double distance(const sf_simulation *s, int from, int to) {
    const double *a = s->array[SF_XPOS] + 3 * from, *b = s->array[SF_XPOS] + 3 * to;
    return norm(s->shared, (double[]){a[0] - b[0], a[1] - b[1], a[2] - b[2]}, 3);
}

/* --- how far ahead --- */

static double joint_x(const sf_simulation *s) { return s->array[SF_QPOS][0]; }
static double body_x(const sf_simulation *s) { return s->array[SF_XPOS][3 * s->shared->body]; }

static double mass_center_x(const sf_simulation *s) {
    double sum = 0.0;
    for (int b = 0; b < s->shared->nbody; b++) sum += s->shared->body_mass[b] * s->array[SF_XIPOS][3 * b];
    return sum / s->shared->total_mass;
}

/* --- starts --- */

static void add_uniform(const sf_mujoco *w, void *random, double *to, const double *middle, int n, double reach) {
    for (int i = 0; i < n; i++) to[i] = middle[i] + w->random_uniform(random, -reach, reach - -reach);
}

static void uniform_noise(const sf_simulation *s) {
    const sf_mujoco *w = s->shared;
    add_uniform(w, s->random, s->array[SF_QPOS], w->init_qpos, w->nq, w->reset_noise_scale);
    add_uniform(w, s->random, s->array[SF_QVEL], w->init_qvel, w->nv, w->reset_noise_scale);
}

static void normal_noise(const sf_simulation *s) {
    const sf_mujoco *w = s->shared;
    add_uniform(w, s->random, s->array[SF_QPOS], w->init_qpos, w->nq, w->reset_noise_scale);
    for (int i = 0; i < w->nv; i++)
        s->array[SF_QVEL][i] = w->init_qvel[i] + w->reset_noise_scale * w->random_standard_normal(s->random);
}

static void reacher_noise(const sf_simulation *s) {
    const sf_mujoco *w = s->shared;
    double *qpos = s->array[SF_QPOS], *qvel = s->array[SF_QVEL], *goal = qpos + w->nq - 2;
    add_uniform(w, s->random, qpos, w->init_qpos, w->nq, 0.1);
    do
        for (int i = 0; i < 2; i++) goal[i] = w->random_uniform(s->random, -0.2, 0.2 - -0.2);
    while (!(norm(w, goal, 2) < 0.2));
    add_uniform(w, s->random, qvel, w->init_qvel, w->nv, 0.005);
    qvel[w->nv - 2] = qvel[w->nv - 1] = 0.0;
}

static void pusher_noise(const sf_simulation *s) {
    const sf_mujoco *w = s->shared;
    double *qpos = s->array[SF_QPOS], *qvel = s->array[SF_QVEL], *cylinder = qpos + w->nq - 4;
    memcpy(qpos, w->init_qpos, (size_t)w->nq * sizeof *qpos);
    do {
        cylinder[0] = w->random_uniform(s->random, -0.3, 0.0 - -0.3);
        cylinder[1] = w->random_uniform(s->random, -0.2, 0.2 - -0.2);
    } while (!(norm(w, cylinder, 2) > 0.17));
    qpos[w->nq - 2] = qpos[w->nq - 1] = 0.0;
    add_uniform(w, s->random, qvel, w->init_qvel, w->nv, 0.005);
    for (int i = w->nv - 4; i < w->nv; i++) qvel[i] = 0.0;
}

/* --- rewards; 1 if the episode has terminated --- */

static int judge_run(const sf_simulation *s, const float *action, double velocity, double *reward) {
    const sf_mujoco *w = s->shared;
    *reward = w->forward_reward_weight * velocity - (double)action_cost(w, action);
    return 0;
}

/* Hopper and Walker2d. Walker2d's state has no limit: state_limit is 0. */
static int judge_walk(const sf_simulation *s, const float *action, double velocity, double *reward) {
    const sf_mujoco *w = s->shared;
    const double *qpos = s->array[SF_QPOS], *qvel = s->array[SF_QVEL], limit = w->state_limit;
    int healthy = w->z_low < qpos[1] && qpos[1] < w->z_high && w->angle_low < qpos[2] && qpos[2] < w->angle_high;
    for (int i = 2; limit > 0.0 && i < w->nq; i++) healthy &= -limit < qpos[i] && qpos[i] < limit;
    for (int i = 0; limit > 0.0 && i < w->nv; i++) healthy &= -limit < qvel[i] && qvel[i] < limit;
    *reward = w->forward_reward_weight * velocity + healthy * w->healthy_reward - (double)action_cost(w, action);
    return !healthy;
}

static int judge_ant(const sf_simulation *s, const float *action, double velocity, double *reward) {
    const sf_mujoco *w = s->shared;
    const double *qpos = s->array[SF_QPOS];
    int healthy = w->z_low <= qpos[2] && qpos[2] <= w->z_high;
    for (int i = 0; i < w->nq; i++) healthy &= isfinite(qpos[i]) != 0;
    for (int i = 0; i < w->nv; i++) healthy &= isfinite(s->array[SF_QVEL][i]) != 0;
    const double contact = w->contact_cost_weight * squares(s->array[SF_CFRC_EXT], 6 * w->nbody, w->force_low, w->force_high);
    *reward = velocity * w->forward_reward_weight + healthy * w->healthy_reward - ((double)action_cost(w, action) + contact);
    return !healthy;
}

static int judge_humanoid(const sf_simulation *s, const float *action, double velocity, double *reward) {
    (void)action;
    const sf_mujoco *w = s->shared;
    const int healthy = w->z_low < s->array[SF_QPOS][2] && s->array[SF_QPOS][2] < w->z_high;
    const double control = w->ctrl_cost_weight * squares(s->array[SF_CTRL], w->nu, -INFINITY, INFINITY);
    const double contact = w->contact_cost_weight * squares(s->array[SF_CFRC_EXT], 6 * w->nbody, -INFINITY, INFINITY);
    *reward = w->forward_reward_weight * velocity + healthy * w->healthy_reward - (control + CLIP(contact, -INFINITY, w->cost_high));
    return !healthy;
}

static int judge_standup(const sf_simulation *s, const float *action, double velocity, double *reward) {
    (void)action, (void)velocity;
    const sf_mujoco *w = s->shared;
    const double control = w->ctrl_cost_weight * squares(s->array[SF_CTRL], w->nu, -INFINITY, INFINITY);
    const double contact = w->contact_cost_weight * squares(s->array[SF_CFRC_EXT], 6 * w->nbody, -INFINITY, INFINITY);
    *reward = s->array[SF_QPOS][2] / w->timestep - control - CLIP(contact, -INFINITY, w->cost_high) + 1.0;
    return 0;
}

static int judge_reacher(const sf_simulation *s, const float *action, double velocity, double *reward) {
    (void)velocity;
    const sf_mujoco *w = s->shared;
    *reward = -distance(s, w->body, w->target) * w->dist_weight + (double)-action_cost(w, action);
    return 0;
}

static int judge_pusher(const sf_simulation *s, const float *action, double velocity, double *reward) {
    (void)velocity;
    const sf_mujoco *w = s->shared;
    const double near = -distance(s, w->body, w->other) * w->near_weight, far = -distance(s, w->body, w->target) * w->dist_weight;
    *reward = far + (double)-action_cost(w, action) + near;
    return 0;
}

static int judge_pendulum(const sf_simulation *s, const float *action, double velocity, double *reward) {
    (void)action, (void)velocity;
    const double *qpos = s->array[SF_QPOS], *qvel = s->array[SF_QVEL];
    const int fallen = !(isfinite(qpos[0]) && isfinite(qpos[1]) && isfinite(qvel[0]) && isfinite(qvel[1])) || fabs(qpos[1]) > 0.2;
    *reward = fallen ? 0.0 : 1.0;
    return fallen;
}

static int judge_double_pendulum(const sf_simulation *s, const float *action, double velocity, double *reward) {
    (void)action, (void)velocity;
    const double *tip = s->array[SF_SITE_XPOS], *qvel = s->array[SF_QVEL], x = tip[0], y = tip[2];
    const int fallen = y <= 1.0;
    const double far = 0.01 * pow(x, 2.0) + pow(y - 2.0, 2.0), fast = 1e-3 * pow(qvel[1], 2.0) + 5e-3 * pow(qvel[2], 2.0);
    *reward = s->shared->healthy_reward * !fallen - far - fast;
    return fallen;
}

const sf_task sf_tasks[] = {{"HalfCheetah-v5", normal_noise, joint_x, judge_run},
                            {"Swimmer-v5", uniform_noise, joint_x, judge_run},
                            {"Hopper-v5", uniform_noise, joint_x, judge_walk},
                            {"Walker2d-v5", uniform_noise, joint_x, judge_walk},
                            {"Ant-v5", normal_noise, body_x, judge_ant},
                            {"Humanoid-v5", uniform_noise, mass_center_x, judge_humanoid},
                            {"HumanoidStandup-v5", uniform_noise, NULL, judge_standup},
                            {"Reacher-v5", reacher_noise, NULL, judge_reacher},
                            {"Pusher-v5", pusher_noise, NULL, judge_pusher},
                            {"InvertedPendulum-v5", uniform_noise, NULL, judge_pendulum},
                            {"InvertedDoublePendulum-v5", normal_noise, NULL, judge_double_pendulum},
                            {NULL, NULL, NULL, NULL}};

/* --- surefoot_env --- */

void sf_mujoco_start(double *state, surefoot_rng *rng) {
    (void)rng; /* each stream has the generator of its env */
    const sf_simulation *s = (const sf_simulation *)state;
    s->shared->mj_resetData(s->model, s->data);
    s->shared->task->noise(s);
    s->shared->mj_forward(s->model, s->data);
}

int sf_mujoco_step(double *state, int64_t choice, const float *action, double *reward, surefoot_rng *rng) {
    (void)choice, (void)rng;
    const sf_simulation *s = (const sf_simulation *)state;
    const sf_mujoco *w = s->shared;
    const double before = w->task->position ? w->task->position(s) : 0.0;
    for (int i = 0; i < w->nu; i++) s->array[SF_CTRL][i] = (double)action[i];
    for (int i = 0; i < w->frame_skip; i++) w->mj_step(s->model, s->data);
    w->mj_rnePostConstraint(s->model, s->data);
    const double velocity = w->task->position ? (w->task->position(s) - before) / w->dt : 0.0;
    return w->task->judge(s, action, velocity, reward);
}

void sf_mujoco_observe(const double *state, float *obs) {
    const sf_simulation *s = (const sf_simulation *)state;
    const sf_mujoco *w = s->shared;
    for (const sf_piece *piece = w->piece; piece < w->piece + w->pieces; piece++) {
        const double *from = s->array[piece->array] + piece->first;
        for (int64_t i = 0; i < piece->count; i++) {
            const double x = piece->minus ? from[i] - from[i + piece->minus] : from[i];
            switch (piece->function) {
            case SF_CLIP: *obs++ = (float)CLIP(x, -10.0, 10.0); break;
            case SF_CLIP_FORCE: *obs++ = (float)CLIP(x, w->force_low, w->force_high); break;
            case SF_COS: *obs++ = (float)cos(x); break;
            case SF_SIN: *obs++ = (float)sin(x); break;
            default: *obs++ = (float)x;
            }
        }
    }
}
