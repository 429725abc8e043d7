typedef int sf_nothing_streams;
