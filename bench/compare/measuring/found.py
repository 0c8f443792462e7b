"""How long to measure, and what was found."""

import dataclasses
import math

from .worker import Refused


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long to measure."""

    rounds: int = 5
    samples: int = 3       # a round
    least_s: float = 0.002  # a sample
    least_calls: int = 1   # a sample
    warm_calls: int = 0    # at the begin of each turn, before anything else: what was made ahead meanwhile is used up
    warm_up: int = 1       # rounds that are thrown away
    warm_s: float = 0.003  # of short samples, at the begin of each turn, at least: threads and processors wake up, caches forget the others
    patience: int = 1      # times as many rounds, while any side's quartiles are too far apart
    most_s: float = math.inf  # after so long, one that is slow has no more than LEAST_ROUNDS
    apart_s: float = 0.0   # how long each is looked at to take its step apart; 0 is not at all
    logged: int = 0        # steps of which the vendor's libraries keep a log of their own, behind all else
    logs_compiled: bool = True  # also of modes that have to be compiled once more for it


@dataclasses.dataclass
class Measured:
    """What was found for one variant."""

    variant: object
    work: tuple = ()           # that was prepared: (problem, inputs, expected, inject)
    hello: dict = dataclasses.field(default_factory=dict)
    prepared: dict = dataclasses.field(default_factory=dict)
    agreement: dict = dataclasses.field(default_factory=dict)
    rounds: list = dataclasses.field(default_factory=list)    # of samples, in seconds
    replies: list = dataclasses.field(default_factory=list)
    disturbed: list = dataclasses.field(default_factory=list)  # reasons not to trust it
    watched: list = dataclasses.field(default_factory=list)    # a Watch of each round
    refusal: Refused | None = None
    worker: object = None      # that has prepared it
    ran_s: float = 0.0         # in its turns so far
    sample_s: float = 0.0      # the last one's length
    ledger: object = None      # a Ledger, or the sentence why there is none
    apart: dict = dataclasses.field(default_factory=dict)  # the reply of the steps that it is of
    apart_refusal: Refused | None = None  # where there is none, and its worker is at fault
    vendor_log: object = None  # a VendorLog, or the sentence why there is none
