"""JAX brings no loader."""

from ..refusals import Unsupported


class Pipeline:
    def __init__(self, framework, problem, tensors, mode):
        raise Unsupported("JAX brings no loader: its users take another framework's")
