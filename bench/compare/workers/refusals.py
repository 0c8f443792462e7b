"""Why a request is not met: a sentence, and of what kind it is."""

MOST, BEGIN = 300, 80  # letters of a sentence, and of its begin where it is cut


class Unsupported(Exception):
    """What this framework does not have, in a sentence."""


class Absent(Exception):
    """Why nothing can run on the device, in a sentence."""


def kind_of(error):
    text = f"{type(error).__name__}: {error}".lower()
    if isinstance(error, (Unsupported, NotImplementedError)):
        return "unsupported"
    if isinstance(error, Absent):
        return "absent"
    if isinstance(error, MemoryError) or "out of memory" in text or "allocate memory" in text or "resourceexhausted" in text:
        return "memory"
    return "failed"


def sentence_of(error):
    """What is too long is cut in the middle: TensorFlow first says where in the program it was, and then why."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= MOST else f"{said[:BEGIN]} ... {said[BEGIN + 5 - MOST:]}"


def refusal_of(error):
    """The reply."""
    return {"error": sentence_of(error), "kind": kind_of(error)}
