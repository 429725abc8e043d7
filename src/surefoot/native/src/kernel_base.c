/* What every machine has: SSE2 on x86-64, NEON on ARM. */
#define KERNEL base
#define VL 4
#if defined(__aarch64__)
#define MR 8
#else
#define MR 4
#endif
#define NV 2
#include "kernel.inc"
