/* Placeholder until the network is in. */
#include "binding.h"
PyMethodDef sf_net_methods[] = {{NULL, NULL, 0, NULL}};
