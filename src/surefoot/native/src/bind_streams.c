/* Placeholder until the worlds are in. */
#include "binding.h"
PyMethodDef sf_streams_methods[] = {{NULL, NULL, 0, NULL}};
