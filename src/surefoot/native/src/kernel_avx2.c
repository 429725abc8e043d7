typedef int sf_nothing_kernel_avx2;
