"""One file a framework: what it calls the ops of the catalogue, and how it differentiates, compiles and updates.

A worker is a process in the framework's own environment, so these files import numpy, safetensors and the framework alone.
"""
