"""Problems of benchdnn's or DeepBench's as lines of bench/problems.txt.

    python problems_of.py shapes_resnet_50 conv_problems.h > problems.txt
    plumb_bench_ops --shapes problems.txt

A line of a file, or of the standard input, is one of
    mb250ic64ih32oc64oh30kh3ph0n"name"   benchdnn: a convolution (kh and oc), pooling (kh), inner product (oc) or a tensor
                                         (neither); what is left out follows by benchdnn's rules
    64x128:128x256n"name"                benchdnn: a matrix product
    250x64x32x32n"name"                  benchdnn: a tensor
    700 161 1 4 32 20 5 0 0 2 2          DeepBench: w h c n k filter_w filter_h pad_w pad_h stride_w stride_h
    1760 16 1760 0 0                     DeepBench: m n k a_t b_t, column-major
What comes twice is left out, and a name that another problem of its op has gets a number. '#' begins a comment, words that begin with '-' are options of benchdnn's, std::make_tuple(...) is DeepBench's own way to write
a line. What a problem must be for the op itself, plumb_bench_ops says.
"""

import argparse
import fileinput
import re
import sys

KEYS = {"g", "mb", "ic", "oc"} | {f"{what}{axis}" for what in "iokspd" for axis in "hw"}


class Wrong(Exception):
    """One sentence about a line."""


def refuse(sentence):
    print(f"problems_of.py: {sentence}", file=sys.stderr)
    sys.exit(2)


def check(right, sentence):
    if not right:
        raise Wrong(sentence)


def x_between(numbers):
    return "x".join(str(n) for n in numbers)


class Axis:
    """A spatial size. The padding behind the image may differ from the one before it, and follows from the output."""

    def __init__(self, size, out=None, kernel=1, stride=1, dilation=0, before=None):
        self.size, self.kernel, self.stride, self.dilation = size, kernel, stride, dilation
        reach = (kernel - 1) * (dilation + 1) + 1
        if before is None:
            before = 0 if out is None else max(0, ((out - 1) * stride + reach - size) // 2)
        check(out is not None or size + 2 * before >= reach,
              f"a kernel that reaches over {reach} does not fit into {size} with a padding of {before}")
        self.before = before
        self.after = before if out is None else max(0, (out - 1) * stride + reach - size - before)
        check(self.after < reach, f"an output of {out} is more than {size} gives with this kernel, stride and padding")
        if out is not None:
            made = (size + before + self.after - reach) // stride + 1
            check(made == out, f"the output is said to be {out}, and is {made}")


def letters(text):
    """{key: number} of a descriptor like mb2ic3ih8."""
    check(re.fullmatch(r"(?:[a-z]+\d+_?)+", text), f'"{text}" is no problem of benchdnn\'s or DeepBench\'s')
    values = {}
    for key, digits in re.findall(r"([a-z]+)(\d+)", text):
        check(key[-1] != "d", "it has three spatial dimensions; only two are supported")
        check(key in KEYS, f'"{key}" is unknown')
        check(key not in values, f"{key} is there twice")
        values[key] = int(digits)
        check(values[key] or key[0] in "pd", f"{key} is 0, which leaves nothing to do")
    return values


def axis_of(values, axis):
    """What is not said of the width is as the height's."""
    def get(what):
        return values.get(what + axis, values.get(what + "h") if axis == "w" else None)
    size = get("i")
    check(size, f"i{axis} is missing")
    return Axis(size, get("o"), get("k") or 1, get("s") or 1, get("d") or 0, get("p"))


def attributes(axes, *names):
    """Those that are not what a line that leaves them out means."""
    h, w = axes
    all_of = {"kernel": (h.kernel, w.kernel), "stride": (h.stride, w.stride),
              "dilation": (h.dilation + 1, w.dilation + 1), "padding": (h.before, h.after, w.before, w.after)}
    usual = {"kernel": (), "stride": () if "kernel" in names else (1, 1), "dilation": (1, 1), "padding": (0, 0, 0, 0)}
    return "".join(f" {n}={x_between(all_of[n])}" for n in names if all_of[n] != usual[n])


def of_letters(name, text):
    v = letters(text)
    check("ic" in v, "ic is missing")
    batch, channels = v.get("mb", 2), v["ic"]
    is_image = "ih" in v or "iw" in v
    axes = []
    if is_image:  # without a height there is one spatial dimension
        axes = [axis_of(v, "h") if "ih" in v else Axis(1), axis_of(v, "w")]
    x = [batch, channels] + [a.size for a in axes]
    if not is_image or not ("kh" in v or "kw" in v):
        if "oc" not in v:
            return f"tensor {name} {x_between(x)}"
        inputs = channels
        for a in axes:
            inputs *= a.size
        return f"linear {name} {batch}x{inputs} {v['oc']}x{inputs}"
    if "oc" not in v:
        check(not any(a.dilation for a in axes), "a pooling has no dilation; leave dh and dw out, or give oc")
        return f"pool2d {name} {x_between(x)}" + attributes(axes, "kernel", "stride", "padding")
    groups = v.get("g", 1)
    check(channels % groups == 0 and v["oc"] % groups == 0,
          f"{groups} groups do not divide {channels} and {v['oc']} channels")
    w = [v["oc"], channels // groups] + [a.kernel for a in axes]
    line = f"conv2d {name} {x_between(x)} {x_between(w)}" + attributes(axes, "stride", "dilation", "padding")
    return line + (f" groups={groups}" if groups > 1 else "")


def of_numbers(v):
    name = "deepbench_" + "_".join(str(n) for n in v)
    if len(v) == 11:
        check(all(v[:7]) and v[9] and v[10], "a size or a stride is 0, which leaves nothing to do")
        width, height, channels, batch, out, kw, kh, pw, ph, sw, sh = v
        axes = Axis(height, None, kh, sh, 0, ph), Axis(width, None, kw, sw, 0, pw)
        return (f"conv2d {name} {x_between((batch, channels, height, width))} {x_between((out, channels, kh, kw))}"
                + attributes(axes, "stride", "padding"))
    check(len(v) == 5, f"there are {len(v)} numbers; DeepBench's convolutions have 11 and its products 5")
    check(all(v[:3]), "a size is 0, which leaves nothing to do")
    m, n, k, ta, tb = v
    # Column-major C = op(A) op(B) is row-major C^T = op(B)^T op(A)^T over the same memory.
    a, b = ((k, n) if tb else (n, k)), ((m, k) if ta else (k, m))
    return (f"matmul {name} {x_between(a)} {x_between(b)}" + (" transpose_a=1" if tb else "")
            + (" transpose_b=1" if ta else ""))


def of_word(word):
    name = word
    if 'n"' in word:
        found = re.fullmatch(r'(.+?)n"([^"]+)"', word)
        check(found, "a name stands in two quotes at the end of the word, behind the problem")
        word, name = found.groups()
    if not word[0].isdigit():
        return of_letters(name, word)
    sides = word.split(":")
    for side in sides:
        check(re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", side), f'"{side}" is neither a positive number nor several with x between')
    check(len(sides) <= 2, "a matrix product has two operands")
    return f"matmul {name} {sides[0]} {sides[1]}" if len(sides) == 2 else f"tensor {name} {word}"


def of_line(line):
    """The lines of bench/problems.txt for a line."""
    words = re.sub(r"std::make_tuple|[(),;]", " ", line).split()
    as_bits = {"true": "1", "t": "1", "T": "1", "false": "0", "n": "0", "N": "0"}
    bits = [as_bits.get(w, w) for w in words]
    if len(bits) > 1 and all(re.fullmatch(r"-?\d+", w) for w in bits):
        check(not any(w.startswith("-") for w in bits), "a number is less than 0")
        return [of_numbers([int(w) for w in bits])]
    return [of_word(w) for w in line.split() if not w.startswith("-")]


def named_apart(lines):
    """Each problem once, and with a name of its own: lists of others have some twice, and other problems of one name."""
    taken, apart = set(), []
    for line in dict.fromkeys(lines):
        op, name, *rest = line.split()
        kind, number = "layer" if op in ("conv2d", "linear") else op, 1
        while (kind, name if number == 1 else f"{name}_{number}") in taken:
            number += 1
        own = name if number == 1 else f"{name}_{number}"
        taken.add((kind, own))
        apart.append(" ".join([op, own, *rest]))
    return apart


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="the standard input unless there are files")
    read = fileinput.FileInput(files=parser.parse_args().files or ("-",))
    made = []
    try:
        for line in read:
            text = line.split("#")[0].strip()
            try:
                made += of_line(text)
            except Wrong as e:
                refuse(f'{read.filename()}, line {read.filelineno()}: {e}, in "{text}"')
    except OSError as e:
        refuse(f"{e.filename}: {e.strerror}")
    except UnicodeDecodeError:
        refuse(f"{read.filename()} is no text")
    if not made:
        refuse('there are no problems; give lines like ic3ih8oc4kh3ph1n"name"')
    try:
        print("\n".join(named_apart(made)), flush=True)
    except OSError as e:
        refuse(f"the standard output cannot be written: {e.strerror}")


if __name__ == "__main__":
    main()
