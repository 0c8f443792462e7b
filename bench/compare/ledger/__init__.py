"""The overhead ledger: a step taken apart, each part measured as what its threads were seen doing, never by subtraction.

The system says when a thread had a processor; a sample says what it did with the period of that time before. At each moment of a
step, the time goes in equal shares to what the running threads do; where none runs, it is idle, or the processors were elsewhere.
The parts so add up to the step but for what no rule knows.
"""

import bisect
import collections
import dataclasses

from .parts import ELSEWHERE, IDLE, UNEXPLAINED, part_of
from .sampler import read

FUNCTIONS = 3  # a part, that are named


@dataclasses.dataclass
class Ledger:
    """Seconds a step."""

    whole_s: float
    parts_s: dict     # {part: seconds}, idle and unexplained included
    threads: dict     # {part: how many threads ran in it, on average}
    functions: dict   # {part: [(function, seconds)]}, the longest first
    seen: float       # processor time that was attributed, as a share of what the system counted

    @property
    def unexplained(self):
        """As a share of the step: what no rule knows, and what is missing or too much in the sum."""
        known = sum(s for part, s in self.parts_s.items() if part != UNEXPLAINED)
        return (self.whole_s - known) / self.whole_s


def ledger_of(file, reply):
    """The ledger of a run of which a sampler wrote the file, by the worker's reply."""
    steps = reply["calls"] * len(reply["samples_s"])
    return take_apart(*read(file), reply["began"], reply["ended"], steps, reply["user_s"] + reply["system_s"])


def by_thread(events):
    found = collections.defaultdict(list)
    for e in events:
        found[e.thread].append(e)
    return found


def pieces_of(samples, switches, began, ended):
    """[(from, to, (part, function))] of one thread: when it ran, cut where a sample was taken, each piece being what the sample at its
    end or the next one says; and (from, to, ELSEWHERE) where it was preempted."""
    times, what = [s.time_s for s in samples], [part_of(s.frames) for s in samples]
    runs = not switches or not switches[0].runs  # as the first switch shows
    last, pieces, since = began, [], None
    for e in [*switches, None]:
        time = ended if e is None else min(max(e.time_s, began), ended)
        if runs:
            pieces += cut(last, time, times, what)
        elif since:
            pieces.append((last, time, ELSEWHERE))
        if e is not None:
            last, runs, since = time, e.runs, e.preempted and not e.runs
    return [p for p in pieces if p[1] > p[0]]


def cut(start, end, times, what):
    """The time from start to end, in pieces that end at samples."""
    i = bisect.bisect_left(times, start)
    while start < end and what:
        until = min(end, times[i]) if i < len(times) else end
        yield start, until, what[min(i, len(what) - 1)]
        start, i = until, i + 1


def take_apart(samples, switches, began, ended, steps, processor_s):
    """The ledger of `steps` steps between two moments; `processor_s` is what the system counted for a step."""
    samples, switches = by_thread(samples), by_thread(switches)
    pieces = [p for t in samples for p in pieces_of(samples[t], switches[t], began, ended)]
    events = sorted([(start, 1, i) for i, (start, _, _) in enumerate(pieces)] + [(end, 0, i) for i, (_, end, _) in enumerate(pieces)])
    wall, seconds, functions = collections.Counter(), collections.Counter(), collections.defaultdict(collections.Counter)
    now, active, preempted = began, set(), set()
    for time, begins, i in [*events, (ended, 0, None)]:
        for j in active:
            part, function = pieces[j][2]
            wall[part] += (time - now) / len(active)
            seconds[part] += time - now
            functions[part][function] += (time - now) / len(active)
        if not active:
            wall[ELSEWHERE if preempted else IDLE] += time - now
        now = time
        if i is not None:
            kept = preempted if pieces[i][2] == ELSEWHERE else active
            kept.add(i) if begins else kept.discard(i)
    return Ledger(
        whole_s=(ended - began) / steps, parts_s={part: s / steps for part, s in wall.most_common() if s > 0},
        threads={part: seconds[part] / wall[part] for part in seconds if wall[part] > 0},
        functions={part: [(f, s / steps) for f, s in counter.most_common(FUNCTIONS)] for part, counter in functions.items()},
        seen=sum(seconds.values()) / (processor_s * steps) if processor_s > 0 else 0.0)
