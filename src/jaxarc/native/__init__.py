"""The kernels of a step in C++, for CPUs: their source, and how it becomes a library that XLA calls."""
