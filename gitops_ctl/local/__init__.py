"""A working system on one machine: the real control plane as ordinary processes on the loopback address."""
