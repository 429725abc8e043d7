/* Memory of what only some networks have: memories before the trunks, exploration matrices of gSDE, many inputs. */
#include "network.h"
#include "scan.h"

/* Inputs of a first layer from which on zeros are looked for: below, the whole product takes no longer than looking and copying. */
#define MANY_INPUTS 128

int sf_build_memory(sf_net *net, int which) {
    sf_memory *memory = &net->memory[which];
    const int width = memory->gates * memory->size;
    memory->inward.at = memory->view ? net->view[0].size : 0;
    if (!sf_build_layer(net, &memory->inward, net->view[memory->view].size, width, 1) ||
        !sf_build_layer(net, &memory->onward, memory->size, width, 1))
        return 0;
    memory->inward.ld = memory->onward.ld = width; /* scan.inc has rows without padding */
    for (int t = memory->inward.weight; t < net->tensors; t++) net->tensor[t].of_critic = which;
    return 1;
}

int sf_build_step(sf_net *net) {
    const sf_memory *memory = &net->memory[0];
    const int64_t rows = net->rows;
    net->hidden = sf_net_allocate(net, rows * memory->size);
    net->next_carry = sf_net_allocate(net, rows * memory->carried);
    net->workspace = sf_net_allocate(net, sf_step_workspace(rows, memory->gates, memory->size, net->inputs));
    return net->hidden && net->next_carry && net->workspace;
}

int sf_build_noise(sf_net *net) {
    const int64_t ld = net->actor_depth ? net->actor[net->actor_depth - 1].ld : net->ld_inputs, rows = net->rows;
    const int64_t size = (int64_t)net->numbers * net->features;
    net->squared = sf_net_allocate(net, rows * ld);
    net->variance = sf_net_allocate(net, net->numbers * rows);
    net->noise_grad = sf_net_allocate(net, net->numbers * rows);
    net->std_squared = sf_net_allocate(net, size);
    net->noise_sum = sf_net_allocate(net, size);
    return net->squared && net->variance && net->noise_grad && net->std_squared && net->noise_sum;
}

int sf_net_reserve_noise(sf_net *net, int streams) {
    if (net->head != SF_GSDE || streams <= net->noise_streams) return 1;
    float *noise = calloc((size_t)streams * net->features * net->numbers, sizeof *noise);
    if (!noise) return 0;
    free(net->noise);
    net->noise = noise;
    net->noise_streams = streams;
    return 1;
}

int sf_build_used(sf_net *net, sf_layer *layer) {
    if (net->memories || layer->inputs < MANY_INPUTS) return 1;
    layer->used = sf_net_allocate(net, layer->inputs); /* int has the size of float */
    layer->used_columns = sf_net_allocate(net, (int64_t)net->rows * (layer->inputs / 2));
    return layer->used && layer->used_columns;
}
