/* Gymnasium's MuJoCo tasks, stepped on a libmujoco that Python has loaded. Nothing of MuJoCo's headers is needed: Python hands
 * over the addresses of four functions and of the arrays that the tasks read and write. */
#ifndef SF_MUJOCO_TASKS_H
#define SF_MUJOCO_TASKS_H

#include "streams.h"

#define SF_MAX_TERMS 128 /* of a sum: numpy's splits longer ones */

/* The arrays of an mjData that the tasks use, in the order of `ARRAYS` in envs/gym/mujoco.py. */
enum { SF_QPOS, SF_QVEL, SF_CTRL, SF_XPOS, SF_XIPOS, SF_SITE_XPOS, SF_CINERT, SF_CVEL, SF_CFRC_EXT, SF_QFRC_ACTUATOR, SF_QFRC_CONSTRAINT, SF_ARRAYS };

/* A piece of the observation: `count` numbers of an array from `first`, minus those `minus` further on if that is not 0. */
typedef struct {
    int64_t array, first, count, minus, function;
} sf_piece;
enum { SF_COPY, SF_CLIP, SF_CLIP_FORCE, SF_COS, SF_SIN, SF_FUNCTIONS };

/* One stream: a copy of this is the `state` of a `surefoot_env`. */
typedef struct {
    const struct sf_mujoco *shared;
    const void *model;
    void *data, *random; /* mjData, and numpy's bitgen_t */
    double *array[SF_ARRAYS];
} sf_simulation;

typedef struct sf_task {
    const char *name;
    void (*noise)(const sf_simulation *);
    double (*position)(const sf_simulation *); /* what the reward for moving ahead is computed from; NULL for none */
    int (*judge)(const sf_simulation *, const float *action, double velocity, double *reward);
} sf_task;
extern const sf_task sf_tasks[];

/* What all streams of a world share. Numbers have the names of the attributes of Gymnasium's env. */
typedef struct sf_mujoco {
    surefoot_env env;
    const sf_task *task;
    void (*mj_step)(const void *, void *), (*mj_forward)(const void *, void *), (*mj_resetData)(const void *, void *),
        (*mj_rnePostConstraint)(const void *, void *);
    double (*random_uniform)(void *, double, double), (*random_standard_normal)(void *);
    int nq, nv, nu, nbody, frame_skip, pieces;
    int fused;       /* numpy's dot product rounds once per term */
    int body, other; /* the bodies that the reward is about */
    int target;
    double dt, timestep, total_mass, reset_noise_scale, healthy_reward, state_limit, z_low, z_high, angle_low, angle_high;
    double forward_reward_weight, ctrl_cost_weight, contact_cost_weight, force_low, force_high, cost_high;
    double near_weight, dist_weight;
    const double *init_qpos, *init_qvel, *body_mass; /* [nq], [nv], [nbody] */
    const sf_piece *piece;
} sf_mujoco;

/* The functions of `surefoot_env`; `state` is an sf_simulation. */
void sf_mujoco_start(double *state, surefoot_rng *rng);
int sf_mujoco_step(double *state, int64_t choice, const float *action, double *reward, surefoot_rng *rng);
void sf_mujoco_observe(const double *state, float *obs);

#endif
