"""What the vendor's libraries themselves say of a step: oneDNN's log and MKL's, a line a call, with what it was and how long it took.

    onednn_verbose,1795636797025.135986,exec,cpu,convolution,jit:avx512_core,forward_training,...,3.55396              oneDNN 2.6
    onednn_verbose,v1,1795636810583.868896,primitive,exec,cpu,convolution,jit:avx512_core,forward_training,...,0.264893       3.12
    MKL_VERBOSE SGEMM(T,N,10,32,64,...) 64.83us CNR:OFF Dyn:0 FastMM:1 TID:0  NThr:2

The second field with a point is when a call began, in milliseconds. A framework may make several calls beside each other, in threads of
its own: a moment goes to them in equal shares, as in the ledger, so that the sum is never more than the step. MKL does not say when its
calls began; they are taken to be alone.
"""

import bisect
import collections
import dataclasses
import re

SETTINGS = {"ONEDNN_VERBOSE": "1", "ONEDNN_VERBOSE_TIMESTAMP": "1", "MKL_VERBOSE": "1"}  # read when a library is first used
CONVERSIONS = ("oneDNN", "reorder")
ONEDNN, MKL = re.compile(r"^(onednn|dnnl)_verbose,"), re.compile(r"^MKL_VERBOSE ")
MKL_CALL = re.compile(r"^MKL_VERBOSE (\w+)\(.*\) (\d+(?:\.\d+)?)(s|ms|us|ns)\b")
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclasses.dataclass(frozen=True)
class Call:
    library: str
    primitive: str
    implementation: str  # "" where the library does not say
    seconds: float
    began_s: float | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """What one implementation of a primitive took: calls and seconds a step."""

    library: str
    primitive: str
    implementation: str
    calls: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class VendorLog:
    """What some steps called, the longest first."""

    steps: int
    whole_s: float  # a step while it was logged, which takes longer
    rows: list

    @property
    def conversions_s(self):
        return sum(r.seconds for r in self.rows if (r.library, r.primitive) == CONVERSIONS)

    @property
    def kernels_s(self):
        """{library: seconds} of all that are no conversions."""
        sums = collections.Counter()
        for r in self.rows:
            if (r.library, r.primitive) != CONVERSIONS:
                sums[r.library] += r.seconds
        return dict(sums)


def call_of_onednn(line):
    """Fields were added before `exec` from version to version; behind it come engine, primitive and implementation, and last the time."""
    fields = line.split(",")
    at = fields.index("exec") if "exec" in fields[:6] else None
    if at is None or len(fields) < at + 5 or "graph" in fields[:at]:  # what a graph executes is logged call by call as well
        return None
    stamps = [float(f) for f in fields[1:at] if re.fullmatch(r"\d+\.\d+", f)]
    try:
        seconds = float(fields[-1]) / 1e3
    except ValueError:  # another thread has written into the line
        return None
    return Call("oneDNN", fields[at + 2], fields[at + 3], seconds, stamps[0] / 1e3 if stamps else None)


def call_of_mkl(line):
    m = MKL_CALL.match(line)
    return Call("MKL", m[1], "", float(m[2]) * UNITS[m[3]]) if m else None


def call_of(line):
    """None of a line that logs no call."""
    if ONEDNN.match(line):
        return call_of_onednn(line)
    return call_of_mkl(line) if MKL.match(line) else None


def is_kept(text):
    """Whether any library has written a line of its log, if only which it is."""
    return any(ONEDNN.match(line) or MKL.match(line) for line in text.split("\n"))


def shares(calls):
    """[seconds], of each call: of a moment in which several run, each has its part."""
    first = min((c.began_s for c in calls if c.began_s is not None), default=0.0)  # from which a clock's digits suffice
    spans = {i: (c.began_s - first, c.began_s - first + c.seconds) for i, c in enumerate(calls) if c.began_s is not None}
    moments = sorted({t for span in spans.values() for t in span})
    running = [0] * len(moments)  # from a moment to the next
    for start, end in spans.values():
        running[bisect.bisect_left(moments, start)] += 1
        running[bisect.bisect_left(moments, end)] -= 1
    one, number = [0.0], 0  # the share of one that has run from the first moment until each of them
    for start, end, change in zip(moments, moments[1:], running):
        number += change
        one.append(one[-1] + ((end - start) / number if number else 0.0))
    until = dict(zip(moments, one))
    return [until[spans[i][1]] - until[spans[i][0]] if i in spans else c.seconds for i, c in enumerate(calls)]


def vendor_log_of(text, steps, whole_s):
    """The log of so many steps."""
    calls = [c for c in map(call_of, text.split("\n")) if c]
    count, seconds = collections.Counter(), collections.Counter()
    for call, share in zip(calls, shares(calls)):
        key = call.library, call.primitive, call.implementation
        count[key] += 1
        seconds[key] += share
    return VendorLog(steps, whole_s, [Row(*key, count[key] / steps, s / steps) for key, s in seconds.most_common()])
