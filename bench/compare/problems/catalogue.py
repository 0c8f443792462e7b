"""The ops that every framework has, on the shapes of bench/problems.txt: what they take, move and compute."""

import math
import pathlib

from . import Problem, Tensor

TABLE = pathlib.Path(__file__).resolve().parents[2] / "problems.txt"
POSITIVE = {"log", "sqrt", "div"}  # their inputs stay away from 0
ONE = ("relu", "gelu", "gelu_tanh", "silu", "softplus", "sigmoid", "tanh", "exp", "log", "sqrt", "square", "abs")
TWO = ("add", "mul", "div", "maximum")
PICKING = {"slice", "index_select"}  # they read no more than they write, and their gradient is as large as their input
SIZE = {"f32": 4, "bf16": 2}
I64 = 8  # bytes of an index, a label, or the place of the largest


def numbers(text):
    return tuple(int(n) for n in text.split("x"))


def sides(text):
    """top, bottom, left and right from one, two or four numbers."""
    n = numbers(text)
    return list(n * 4 if len(n) == 1 else (n[0], n[0], n[1], n[1]) if len(n) == 2 else n)


def require(fits):
    """Operands that do not fit together are no problem."""
    if not fits:
        raise ValueError


def pair(text):
    n = numbers(text)
    return list(n * 2 if len(n) == 1 else n)


def extents(x, window, stride, padding, dilation=(1, 1)):
    """Height and width of what windows see."""
    return tuple((x[2 + i] + padding[2 * i] + padding[2 * i + 1] - dilation[i] * (window[i] - 1) - 1) // stride[i] + 1 for i in (0, 1))


class BadTable(Exception):
    """A line that is no problem, in a sentence that names file and line."""


# What a line may have beside them: how many numbers each is.
ATTRIBUTES = {"conv2d": {"stride": (1, 2), "padding": (1, 2, 4), "dilation": (1, 2), "groups": (1,)},
              "matmul": {"transpose_a": (1,), "transpose_b": (1,)},
              "pool2d": {"kernel": (1, 2), "stride": (1, 2), "padding": (1, 2, 4)}}
OPERANDS = {"conv2d": (4, 4), "linear": (2, 2), "matmul": (None, None), "pool2d": (4,), "tensor": (None,)}  # their ranks


def read_table(path=TABLE):
    """[(kind, name, operands, attributes)] of a file of bench/problems.h's lines."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as e:
        raise BadTable(f"{path} cannot be read: {getattr(e, 'strerror', None) or 'it is not text'}") from None
    lines, names = [], set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            try:
                lines.append(table_line(*words))
                list(forward_problems(lines[-1:]))
            except (ValueError, TypeError, KeyError, IndexError, ArithmeticError):
                raise BadTable(f"{path}, line {number}: {line.strip()!r} is no problem that fits together; bench/problems.h says what a line is") from None
            kind, name, *_ = lines[-1]
            known = "layer" if kind in ("conv2d", "linear") else kind, name
            if known in names:
                raise BadTable(f"{path}, line {number}: there is another {' '.join(known)}; give each a name of its own")
            names.add(known)
    if not lines:
        raise BadTable(f"{path} has no problem")
    return lines


def table_line(kind, name, *words):
    operands = [numbers(w) for w in words if "=" not in w]
    ranks = OPERANDS[kind]
    if len(operands) != len(ranks) or any(r not in (None, len(o)) for r, o in zip(ranks, operands)) or any(n < 1 for o in operands for n in o):
        raise ValueError
    return kind, name, operands, attributes_of(kind, [w.split("=") for w in words if "=" in w])


def attributes_of(kind, said):
    """{name: text} of [(name, text)], each of the kind's own, and once."""
    for key, text in said:
        require(len(numbers(text)) in ATTRIBUTES.get(kind, {}).get(key, ()) and min(numbers(text)) >= 0)
    require(len(dict(said)) == len(said))
    return dict(said)


def op_problem(op, name, inputs, attributes, y, flops=0.0, gradients=None):
    """The forward problem; `y` is the output's shape."""
    node = {"op": op, "inputs": {n: n for n in inputs}, "output": "y", "attributes": attributes}
    gradients = tuple(n for n, t in inputs.items() if not t.classes) if gradients is None else gradients
    tensors = dict(inputs)
    if gradients:
        tensors["dy"] = Tensor(tuple(y))
    whole, own = (sum(t.count for t in inputs.values() if bool(t.classes) == is_whole) for is_whole in (True, False))
    written = math.prod(y) * (I64 if op == "argmax" else SIZE["f32"])
    moved = float(SIZE["f32"] * (math.prod(y) if op in PICKING else own) + I64 * whole + written)
    before = 4.0 * (whole + own + math.prod(y))
    return Problem("op", op, name, "forward", (node,), tensors, "y", gradients, batch=next(iter(inputs.values())).shape[0],
                   flops=float(flops), bytes=moved, miscounted=(0.0, before - moved))


def conv2d(name, x, w, text):
    stride, padding, dilation = pair(text.get("stride", "1")), sides(text.get("padding", "0")), pair(text.get("dilation", "1"))
    attributes = {"stride": stride, "padding": padding, "dilation": dilation, "groups": int(text.get("groups", 1))}
    require(min(stride + dilation) > 0)
    y = (x[0], w[0], *extents(x, w[2:], stride, padding, dilation))
    require(x[1] == w[1] * attributes["groups"] and w[0] % attributes["groups"] == 0 and min(y) > 0)
    bound = 1 / math.sqrt(math.prod(w[1:]))
    inputs = {"x": Tensor(x), "w": Tensor(w, -bound, bound), "b": Tensor((w[0],), -bound, bound)}
    return op_problem("conv2d", name, inputs, attributes, y, 2 * math.prod(y) * math.prod(w[1:]))


def pooling(op, name, x, text):
    kernel, padding = pair(text["kernel"]), sides(text.get("padding", "0"))
    stride = pair(text.get("stride", text["kernel"]))
    require(min(kernel + stride) > 0)
    y = (x[0], x[1], *extents(x, kernel, stride, padding))
    require(min(y) > 0)
    return op_problem(op, name, {"x": Tensor(x)}, {"kernel": kernel, "stride": stride, "padding": padding}, y)


def linear(name, x, w):
    require(x[1] == w[1])
    bound = 1 / math.sqrt(w[1])
    inputs = {"x": Tensor(x), "w": Tensor(w, -bound, bound), "b": Tensor((w[0],), -bound, bound)}
    return op_problem("linear", name, inputs, {}, (x[0], w[0]), 2 * x[0] * w[0] * w[1])


def matmul(name, a, b, text):
    transpose_a, transpose_b = (int(text.get(key, 0)) != 0 for key in ("transpose_a", "transpose_b"))
    m, k = (a[-1], a[-2]) if transpose_a else a[-2:]
    n = b[-2] if transpose_b else b[-1]
    require(a[:-2] == b[:-2] and k == (b[-1] if transpose_b else b[-2]))
    y = (*a[:-2], m, n)
    return op_problem("matmul", name, {"a": Tensor(a), "b": Tensor(b)}, {"transpose_a": transpose_a, "transpose_b": transpose_b}, y,
                      2 * math.prod(y) * k)


def index_select(name, x, dim):
    """Half as many slices as there are, by random numbers, of which some come more than once."""
    y = (*x[:dim], max(1, x[dim] // 2), *x[dim + 1:])
    return op_problem("index_select", name, {"x": Tensor(x), "index": Tensor(y[dim:dim + 1], classes=x[dim])}, {"dim": dim}, y)


def of_tensor(name, x):
    """Every op that a plain tensor admits."""
    def range_of(op):
        return {"low": 0.5, "high": 1.5} if op in POSITIVE else {}
    for op in ONE:
        yield op_problem(op, name, {"x": Tensor(x, **range_of(op))}, {}, x)
    for op in TWO:
        yield op_problem(op, name, {"x": Tensor(x), "other": Tensor(x, **range_of(op))}, {}, x)
    rest = tuple(range(2, len(x)))
    yield op_problem("sum", name, {"x": Tensor(x)}, {"dims": []}, ())
    yield op_problem("mean", name, {"x": Tensor(x)}, {"dims": list(rest) or [1]}, x[:2] if rest else x[:1])
    yield op_problem("max", name, {"x": Tensor(x)}, {"dims": list(rest) or [1]}, x[:2] if rest else x[:1])
    yield op_problem("argmax", name, {"x": Tensor(x)}, {"dims": [1]}, x[:1] + x[2:], gradients=())
    for op in ("softmax", "log_softmax"):
        yield op_problem(op, name, {"x": Tensor(x)}, {"dim": 1}, x)
    yield op_problem("mse", name, {"x": Tensor(x), "other": Tensor(x)}, {}, ())
    yield op_problem("concat", name, {"x": Tensor(x), "other": Tensor(x)}, {"dim": 1}, (x[0], 2 * x[1], *x[2:]))
    half = (x[0], x[1] // 2, *x[2:])
    yield op_problem("slice", name, {"x": Tensor(x)}, {"begin": [0, x[1] - half[1], *(0 for _ in rest)], "extents": list(half)}, half)
    yield index_select(name, x, 1)
    if len(x) == 2:
        inputs = {"x": Tensor(x), "labels": Tensor(x[:1], classes=x[1])}
        yield op_problem("cross_entropy", name, inputs, {}, ())
        yield op_problem("permute", name, {"x": Tensor(x)}, {"dims": [1, 0]}, (x[1], x[0]))
    if len(x) == 4:
        c = x[1]
        yield op_problem("batch_norm", name, {"x": Tensor(x), "w": Tensor((c,), 0.5, 1.5), "b": Tensor((c,))},
                         {"epsilon": 1e-5, "momentum": 0.1}, x).with_(f32_inputs=("w", "b"))
        yield op_problem("pad2d", name, {"x": Tensor(x)}, {"padding": [1, 1, 1, 1]}, (x[0], c, x[2] + 2, x[3] + 2))
        yield op_problem("permute", name, {"x": Tensor(x)}, {"dims": [0, 1, 3, 2]}, (x[0], c, x[3], x[2]))


def forward_problems(table=None):
    """All ops on all shapes of the table, forward and in f32."""
    for kind, name, operands, text in table if table is not None else read_table():
        if kind == "conv2d":
            yield conv2d(name, *operands, text)
        elif kind == "linear":
            yield linear(name, *operands)
        elif kind == "matmul":
            yield matmul(name, *operands, text)
        elif kind == "pool2d":
            for op in ("max_pool2d", "avg_pool2d"):
                yield pooling(op, name, *operands, text)
        else:
            yield from of_tensor(name, *operands)


def with_batch(table, batch):
    """The table with another first extent for all but matrix products."""
    def other(kind, name, operands, text):
        if kind != "matmul":
            operands = [(batch, *operands[0][1:]), *operands[1:]]
        return kind, name, operands, text
    return [other(*line) for line in table]


def variants(problem, directions, dtypes):
    """The same work in these directions and dtypes."""
    for dtype in dtypes:
        for direction in directions:
            if direction == "forward" or problem.gradients:
                runs = 1 if direction == "forward" else 1 + len(product_gradients(problem))
                moved = bytes_of(problem, direction, dtype)
                before = (problem.bytes + problem.miscounted[1]) * SIZE[dtype] / 4 * (1 if direction == "forward" else 2)
                yield problem.with_(direction=direction, dtype=dtype, flops=problem.flops * runs, bytes=moved, miscounted=(0.0, before - moved))


def bytes_of(problem, direction, dtype):
    """What the forward problem in f32 moves in another direction and dtype. Backward moves as much again, the gradients in the place of what they
    are of, except where only a part of the input was read: the gradient is written whole."""
    tensors = problem.inputs
    whole = problem.bytes - 4 * tensors["x"].count if problem.op == "argmax" else I64 * sum(t.count for t in tensors.values() if t.classes)
    own = back = (problem.bytes - whole) / 4
    if problem.op in PICKING:
        back = tensors["x"].count + tensors["dy"].count
    return SIZE[dtype] * own + whole + (SIZE[dtype] * back + whole if direction != "forward" else 0.0)


def product_gradients(problem):
    """The gradients that cost as much as the product itself."""
    return [n for n in problem.gradients if n != "b" or problem.op == "matmul"]
