/* What bind_rollout.c and bind_steps.c share. */
#ifndef SF_BIND_ROLLOUT_H
#define SF_BIND_ROLLOUT_H

#include "arguments.h"
#include "rollout.h"

#define SF_ROLLOUT_CAPSULE "surefoot.rollout"

typedef struct {
    sf_net *net;
    sf_rollout *rollout;
    sf_streams *streams;
    sf_rng *rng;
    int64_t t;
    const float *obs;
    const uint8_t *mask;
} sf_rollout_call;

/* Read the network and the rollout that begin a call; 1 if they fit each other. */
int sf_read_pair(sf_call *call, sf_rollout_call *in);

/* 1 if no other thread is stepping the streams, else 0 with an exception set. */
int sf_streams_are_free(const sf_streams *streams);

/* A capsule that owns the streams; if it cannot be made, they are freed here. */
PyObject *sf_streams_capsule(sf_streams *streams);

#endif
