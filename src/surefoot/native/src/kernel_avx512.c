/* Sixteen lanes, thirty-two registers. */
#define KERNEL avx512
#define VL 16
#define MR 8
#define NV 2
#include "kernel.inc"
