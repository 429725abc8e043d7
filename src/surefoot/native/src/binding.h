/* What the files of the extension module share: their tables of functions. */
#ifndef SF_BINDING_H
#define SF_BINDING_H

#include "arguments.h"

extern PyMethodDef sf_instruction_set_methods[], sf_net_methods[], sf_act_methods[], sf_learn_methods[], sf_rollout_methods[],
    sf_statistics_methods[], sf_step_methods[], sf_scan_methods[], sf_streams_methods[], sf_mujoco_methods[],
    sf_town_methods[], sf_testing_methods[];

#endif
