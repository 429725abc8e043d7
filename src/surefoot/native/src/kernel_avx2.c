/* Eight lanes and fused multiply-add. */
#define KERNEL avx2
#define VL 8
#define MR 6
#define NV 2
#include "kernel.inc"
