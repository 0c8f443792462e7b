"""Holds PyTorch, TensorFlow and JAX against Plumbline, op by op and network by network. README.md says how it is built."""
