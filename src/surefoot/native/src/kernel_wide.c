/* The AVX-512 kernel's text with pairs of AVX2 registers for its vectors: slower, and never chosen by itself. It lets the
 * tests run that text on machines without AVX-512. */
#define KERNEL wide
#define VL 16
#define MR 8
#define NV 2
#include "kernel.inc"
