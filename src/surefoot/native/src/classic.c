typedef int sf_nothing_classic;
