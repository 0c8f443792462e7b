"""What the golden scripts share: numbers made by a hash, and the JSON files beside this script."""

import json
import pathlib
import re

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


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


def tensor(array):
    """The JSON form of an array: its shape, and its elements in row-major order."""
    array = np.asarray(array)
    return {"shape": list(array.shape), "data": array.reshape(-1).tolist()}


def array(entry, dtype=np.float64):
    """The array of a tensor's JSON form."""
    return np.array(entry["data"], dtype).reshape(entry["shape"])


def assert_close(name, got, want, tolerance, scale=1.0):
    """Fails unless |got - want| <= tolerance * max(scale, |want|) everywhere; returns the largest such quotient."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        raise AssertionError(f"{name}: the shapes are {got.shape} and {want.shape}")
    error = float(np.max(np.abs(got - want) / np.maximum(scale, np.abs(want)), initial=0.0))
    if not error <= tolerance:
        raise AssertionError(f"{name}: the error {error:.3g} is above {tolerance:.3g}")
    return error


def load(file):
    """The contents of a golden file, or an empty object where it does not exist yet."""
    path = HERE / file
    return json.loads(path.read_text()) if path.exists() else {}


def update(file, **sections):
    """Replaces the named sections of a golden file and keeps the others."""
    text = json.dumps({**load(file), **sections}, indent=1, sort_keys=True, allow_nan=False)
    flat = re.sub(r"\[[^\[\]{}]*\]", lambda m: json.dumps(json.loads(m[0])), text)  # lists of plain values on one line
    (HERE / file).write_text(flat + "\n")
    print(f"{file}: {len(flat) / 1024:.0f} KB, sections {', '.join(sections)}")
