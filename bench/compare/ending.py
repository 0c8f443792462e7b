"""The ways to end a program from outside, as one: each is an interrupt, on which what lies in temporary folders, gigabytes of tensors, is removed."""

import signal

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(number, _):
    """What comes twice, as from a terminal and from its shell or an impatient hand, ends it once: what is removed then is removed whole."""
    for s in ENDS:
        signal.signal(s, signal.SIG_IGN)
    raise KeyboardInterrupt(number)


def as_interrupts():
    """From now on; what is ignored, as by nohup, stays so."""
    for s in ENDS:
        if signal.getsignal(s) is not signal.SIG_IGN:
            signal.signal(s, interrupt)


def status_of(interrupted):
    """The exit status, as shells have it."""
    return 128 + (interrupted.args[0] if interrupted.args else signal.SIGINT)
