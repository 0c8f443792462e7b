"""What the golden scripts share: numbers made by a hash, and the safetensors files beside this script.

As a program it shows a file: golden.py FILE [NAME] prints the names and shapes in it, or the text or tensor of a name.
"""

import json
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8")}


def splitmix64(x):
    """The splitmix64 hash of each element of a uint64 array."""
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def hashes(p, count):
    """The 64-bit hashes of stream `p` at the flat indices 0 .. count-1."""
    return splitmix64(np.arange(count, dtype=np.uint64) + np.uint64(p << 32))


def unit(p, shape):
    """float32 numbers in [0, 1), multiples of 2^-24, in row-major order of `shape`."""
    u = np.empty(int(np.prod(shape)), np.float32)
    for first in range(0, u.size, 1 << 22):  # in slices: the hashes of 67 million weights take half a gigabyte
        count = min(1 << 22, u.size - first)
        h = splitmix64(np.arange(first, first + count, dtype=np.uint64) + np.uint64(p << 32))
        u[first : first + count] = (h >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return u.reshape(shape)


def symmetric(p, shape, bound=1.0):
    """float32 numbers in [-bound, bound): (2u - 1), which is exact, times the float32 bound, rounded once."""
    return (np.float32(2) * unit(p, shape) - np.float32(1)) * np.float32(bound)


def assert_close(name, got, want, tolerance, scale=1.0):
    """Fails unless |got - want| <= tolerance * max(scale, |want|) everywhere; returns the largest such quotient."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        raise AssertionError(f"{name}: the shapes are {got.shape} and {want.shape}")
    error = float(np.max(np.abs(got - want) / np.maximum(scale, np.abs(want)), initial=0.0))
    if not error <= tolerance:
        raise AssertionError(f"{name}: the error {error:.3g} is above {tolerance:.3g}")
    return error


def text(arguments):
    """Arguments as one text, such as "bias=none groups=1 stride=2,2 training=true"."""

    def plain(value):
        if isinstance(value, (list, tuple)):
            return ",".join(map(plain, value))
        return str(value).lower() if value is None or isinstance(value, bool) else f"{value}"

    return " ".join(f"{name}={plain(value)}" for name, value in sorted(arguments.items()))


def leaves(tree, prefix=""):
    """(name, text or array) of all that is in nested dictionaries; a name is the way to it, joined by slashes."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}/")
        else:
            yield prefix + key, value if isinstance(value, str) else np.asarray(value)


def load(file):
    """The contents of a golden file as nested dictionaries, or an empty one where it does not exist yet."""
    path, tree = HERE / file, {}
    if not path.exists():
        return tree
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    flat = header.pop("__metadata__", {})
    for name, entry in header.items():
        first, last = (begin + offset for offset in entry["data_offsets"])
        flat[name] = np.frombuffer(data[first:last], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    for name, value in flat.items():
        *way, last = name.split("/")
        inner = tree
        for key in way:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return tree


def update(file, **sections):
    """Replaces the named sections of a golden file and keeps the others. Texts become the file's metadata."""
    tree = {**load(file), **sections}
    header, data = {"__metadata__": {}}, b""
    for name, value in sorted(leaves(tree), key=lambda leaf: leaf[0]):
        if isinstance(value, str):
            header["__metadata__"][name] = value
            continue
        kind = "F64" if value.dtype == np.float64 else "I64"  # float32 is a mistake: the next line refuses it
        piece = value.astype(DTYPES[kind], casting="safe").tobytes()
        offsets = [len(data), len(data) + len(piece)]
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": offsets}
        data += piece
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    (HERE / file).write_bytes(len(head).to_bytes(8, "little") + head + data)
    print(f"{file}: {(8 + len(head) + len(data)) / 1024:.0f} KB, sections {', '.join(sections)}")


if __name__ == "__main__":
    np.set_printoptions(precision=17, threshold=sys.maxsize)
    for leaf, content in leaves(load(sys.argv[1])):
        if sys.argv[2:] == [leaf]:
            print(content)
        elif not sys.argv[2:]:
            print(leaf, content if isinstance(content, str) else f"{content.dtype} {content.shape}")
