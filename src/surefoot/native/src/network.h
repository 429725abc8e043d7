/* Building a network: what Python asks for, and the memory that the kernel allocates for it (network.c). */
#ifndef SF_NETWORK_H
#define SF_NETWORK_H

#include "arguments.h"
#include "kernel.h"

#define SF_NET_CAPSULE "surefoot.net"

typedef struct {
    const char *instruction_set;
    int inputs, critic_inputs, shared, activation, head; /* critic_inputs: what only the critic sees, 0 if the same as the actor */
    sf_ints actor_widths, critic_widths, sizes; /* options of each choice */
    int numbers; /* of an action, beside its choices */
    int64_t first_option;
    float log_std_low, log_std_high;
    int noise_every; /* of a gSDE head */
    int memory, memory_size;
    const float *low, *high; /* [numbers], NULL without any */
} sf_net_spec;

/* What Python calls the enumerators of kernel.h; NULL ends each list. */
extern const char *const sf_activation_names[], *const sf_head_names[], *const sf_memory_names[], *const sf_optimizer_names[];

/* NULL if out of memory. The weights have no address yet. */
sf_net *sf_net_new(const sf_net_spec *spec, const sf_ops *ops);
void sf_net_free(sf_net *net);

/* Make room for the exploration matrices of this many streams, if the head has any; 0 if out of memory. */
int sf_net_reserve_noise(sf_net *net, int streams);

/* For network_options.c: zeroed floats that are freed with the network, aligned to a cache line, and one layer. NULL or 0 if out of
 * memory, like all of these. */
void *sf_net_allocate(sf_net *net, int64_t floats);
int sf_build_layer(sf_net *net, sf_layer *layer, int inputs, int outputs, int is_output);
int sf_build_memory(sf_net *net, int which); /* a memory before a trunk */
int sf_build_step(sf_net *net);              /* what one step of the memories works with */
int sf_build_noise(sf_net *net);             /* what a gSDE head works with */
int sf_build_used(sf_net *net, sf_layer *layer); /* a first layer's list of the inputs that are not zero, if it has many */

/* Copy parameters and optimizer slots into the snapshot (0 if out of memory), or back from it. */
int sf_net_save(sf_net *net);
void sf_net_restore(sf_net *net);

/* The arithmetic of an instruction set, or of the machine's best for "auto"; NULL if the machine does not have it. */
const sf_ops *sf_ops_named(const char *name);

/* 1 if no other thread is using the network; 1 if its weights have addresses too. Else 0 with an exception set. */
int sf_net_is_free(const sf_net *net);
int sf_net_is_ready(const sf_net *net);

/* Read the states of the memories of some streams, which acting updates; None without memory. */
int sf_read_carry(sf_call *call, const sf_net *net, int64_t streams, float *carry[2]);

/* Read length, start, valid and the states that columns begin with: what an update of a network with memory takes. */
int sf_read_columns(sf_call *call, const sf_net *net, sf_update *update);

/* 1 if every choice in the actions of an update is one of the options, else 0 with an exception set. */
int sf_actions_are_options(const sf_net *net, const sf_update *update);

#endif
