"""Whether a worker's turn was disturbed, by what the system counts of processors."""

import dataclasses
import math

LONG = 0.3  # a turn of so many seconds has memory to free, and a load that clocks tell
QUIET = 0.02  # the share of its time that the others may use while a worker runs
TICKS_S = 0.02  # what they seem to use when they sleep: the clock of processes is read in hundredths of a second
AWAKE = 0.1  # the same of short turns, at whose begin threads still wait awake for some tenths of a millisecond, as they are told
MOST_ELSEWHERE = 0.1  # the share of the processors' time that others on the machine may use
MOST_OF_ONE = 0.5  # the share of one processor's: a thread that has to be bound to the same one makes all of a side's wait


SLOW_CLOCK = 1.1  # times as long as the fastest additions of the run


@dataclasses.dataclass(frozen=True)
class Watch:
    """Seconds of one turn, or of several: its length, what the other workers used, and of the processors what others used and all."""

    length: float = 0.0
    workers: float = 0.0
    elsewhere: float = 0.0
    processors: float = 0.0

    def __add__(self, other):
        return Watch(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other))))

    def other_work(self):
        """Whether the machine did some, in a list, as far as clocks that tick a hundred times a second tell."""
        most = min(MOST_ELSEWHERE * self.processors, MOST_OF_ONE * self.length)
        return ["the machine did other work"] if self.length > LONG and self.elsewhere > most else []

    def restless(self, most):
        """Whether another worker did not sleep, in a list: they used more than that share of its time."""
        return ["another worker did not sleep"] if self.workers > most * self.length + TICKS_S else []

    def reasons(self):
        """What disturbed a turn."""
        return self.restless(QUIET) + self.other_work()

    def reasons_together(self):
        """What disturbed short turns, of which it is the sum."""
        return self.restless(AWAKE) + self.other_work()


class Clock:
    """The processor's, by how long the same additions take; all sessions of a run have one."""

    def __init__(self):
        self.least_s = math.inf

    def is_slow(self, *pulses):
        """Whether all of these were longer than the shortest so far allows; None is one that was not taken."""
        known = [p for p in pulses if p is not None]
        self.least_s = min([self.least_s, *known])
        return bool(known) and min(known) > SLOW_CLOCK * self.least_s
