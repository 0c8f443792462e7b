"""JAX's defaults: it brings neither layers nor optimizers, so that there is only how it computes."""

import jax
import jax.numpy as jnp
import numpy as np

from . import of_arithmetic


def defaults():
    said = jax.config.jax_default_matmul_precision
    mode = said or "the backend's choice"
    multiply, matmul = jax.jit(jnp.multiply), jax.jit(jnp.matmul)
    return {"jax": {**of_arithmetic(lambda a, b: np.asarray(multiply(a, b)), lambda a, b: np.asarray(matmul(a, b))),
                    "gpu_product": mode, "gpu_convolution": mode}}
