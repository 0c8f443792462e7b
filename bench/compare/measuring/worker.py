"""A worker as a process of its own: requests in, replies out. It may die or hang without taking anything with it."""

import contextlib
import functools
import json
import os
import pathlib
import selectors
import subprocess
import time


NO_DISK = ("No space left on device", "Disk quota exceeded", "Input/output error")  # the system's words, in whichever side's sentence


class Refused(Exception):
    """A request that a worker could not meet. `kind`: absent, unsupported, memory, disk, failed, died or hung."""

    def __init__(self, sentence, kind):
        super().__init__(sentence)
        self.kind = kind


class Worker:
    """Starts a worker, and speaks with it. Replies that do not come within `patience_s` end it."""

    def __init__(self, words, environment, log, patience_s=600):
        self.log, self.patience_s, self.ended = log, patience_s, None  # ended: why it was killed
        with open(log, "w") as errors:
            try:
                self.process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
            except OSError as e:
                raise Refused(f"{words[0]} cannot be started: {e.strerror}", "absent") from None
        self.give_way()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.rest = b""

    @functools.cached_property
    def hello(self):
        """What it says of itself when it is ready; until somebody asks, it may start beside others."""
        return self.read()

    def give_way(self):
        """Where memory is short the system ends a worker, and not who started it."""
        try:
            pathlib.Path(f"/proc/{self.process.pid}/oom_score_adj").write_text("800")
        except OSError:
            pass

    def read(self):
        end = time.monotonic() + self.patience_s
        while b"\n" not in self.rest:
            if not self.selector.select(max(0, end - time.monotonic())):
                self.ended = f"no reply within {self.patience_s:g} s"
                self.kill()
                raise Refused(self.ended, "hung")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                raise Refused(self.last_words(), "died")
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        try:
            return json.loads(line)
        except ValueError:
            self.ended = f"a reply is no JSON: {line[:80]!r}"
            self.kill()
            raise Refused(self.ended, "failed") from None

    def last_words(self):
        """Why a process has ended, as far as it said."""
        status = self.process.wait()
        if self.ended:
            return self.ended
        with open(self.log, errors="replace") as f:
            lines = [line.strip() for line in f if line.strip()]
        if status in (-9, 137):
            return "the process was killed, as the system does when memory is short"
        return f"the process ended with status {status}" + (f": {lines[-1][:200]}" if lines else "")

    def ask(self, what, **request):
        """The reply to a request. Throws Refused."""
        if not self.hello or self.process.poll() is not None:
            raise Refused(self.last_words(), "died")
        try:
            self.process.stdin.write(json.dumps({"do": what, **request}).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Refused(self.last_words(), "died") from None
        reply = self.read()
        if "error" in reply:
            raise Refused(reply["error"], "disk" if any(words in reply["error"] for words in NO_DISK) else reply["kind"])
        return reply

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Asks it to end, and does not wait for it."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def close(self):
        """Ends it: kindly, and after five seconds not."""
        self.end()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process.stdout.close()
        self.selector.close()
        pathlib.Path(f"/tmp/perf-{self.process.pid}.map").unlink(missing_ok=True)  # Linux's place for names of made code, oneDNN's

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
