"""The ops that are said to be slow in one framework or another: argmax, reductions over one dimension, slices, concatenations, indexing."""

from ..measuring.session import Plan
from ..problems import Tensor, catalogue
from .ops import sides

NAME = "odd_ops"
SHOWS = ("Ops that do little arithmetic and read memory in an inconvenient order: the largest element's place and sums over the first, a middle and "
         "the last dimension, of long rows and of short ones; slices and concatenations along each dimension; half as many slices as each "
         "dimension has, picked by random numbers that may come more than once (index_select, tf.gather, jnp.take). What bounds them is memory, "
         "so a large ratio is a framework's own doing, or that of NHWC, in which TensorFlow and JAX have images here.")

SHAPES = {"long_rows": (64, 100_000), "short_rows": (200_000, 16), "images": (32, 64, 56, 56)}


def without(x, dim):
    return (*x[:dim], *x[dim + 1:])


def forward_problems(shapes):
    for name, x in shapes.items():
        for dim in range(len(x)):
            label = f"{name}.dim{dim}"
            yield catalogue.op_problem("argmax", label, {"x": Tensor(x)}, {"dims": [dim]}, without(x, dim), gradients=())
            yield catalogue.op_problem("sum", label, {"x": Tensor(x)}, {"dims": [dim]}, without(x, dim))
            yield catalogue.op_problem("max", label, {"x": Tensor(x)}, {"dims": [dim]}, without(x, dim))
            half = (*x[:dim], x[dim] // 2, *x[dim + 1:])
            begin = [x[dim] - half[dim] if d == dim else 0 for d in range(len(x))]
            yield catalogue.op_problem("slice", label, {"x": Tensor(x)}, {"begin": begin, "extents": list(half)}, half)
            both = (*x[:dim], 2 * x[dim], *x[dim + 1:])
            yield catalogue.op_problem("concat", label, {"x": Tensor(x), "other": Tensor(x)}, {"dim": dim}, both)
            yield catalogue.index_select(label, x, dim)


def run(bench):
    directions, dtypes = ("forward", "forward_backward") if bench.full else ("forward",), bench.dtypes()
    problems = [q for p in forward_problems(SHAPES) for q in catalogue.variants(p, directions, dtypes)]
    bench.measure_all(NAME, problems, sides(bench), Plan(rounds=5, samples=2, least_s=0.001))
