"""Whether a worker's turn was disturbed, by what the system counts of processors."""

import dataclasses

LONG = 0.3  # a turn of so many seconds has memory to free, and a load that clocks tell
QUIET = 0.02  # the share of its time that the others may use while a worker runs
TICKS_S = 0.02  # what they seem to use when they sleep: the clock of processes is read in hundredths of a second
MOST_ELSEWHERE = 0.1  # the share of the processors' time that others on the machine may use
MOST_OF_ONE = 0.5  # the share of one processor's: a thread that has to be bound to the same one makes all of a side's wait


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

    def reasons(self):
        """What disturbed it."""
        restless = ["another worker did not sleep"] if self.workers > QUIET * self.length + TICKS_S else []
        return restless + self.other_work()
