"""Tests of the comparison: on Plumbline and on a framework of numpy, without any that must be fetched.

    PLUMB_BENCH_WORKER=build/cpu/bin/plumb_bench_worker PYTHONPATH=bench pytest bench/compare/tests
"""

import dataclasses
import os
import sys

import pytest

from compare import __main__ as command
from compare.measuring.engines import Engines
from compare.measuring.session import Session


def pytest_configure(config):
    config.addinivalue_line("markers", "timed: asks something of times, so that nothing may run beside it")


@pytest.fixture(scope="session")
def worker_program():
    return os.environ["PLUMB_BENCH_WORKER"]


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """One for all: whom the tests start has the kernels that an earlier one has measured, and the user's stay as they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def engines(worker_program):
    programs = {"plumbline": worker_program, "fake": sys.executable, "another": sys.executable}
    return Engines(programs, threads=1, modules={"another": "fake"})


@dataclasses.dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def described_once():
    """Of engines: the machine with its roofs, which are measured for the first command that asks for their threads and device."""
    described, known = command.described, {}

    def of(engines):
        key = engines.threads, engines.device
        if key not in known:
            known[key] = described(engines)
        return known[key]
    return of


@pytest.fixture
def compare(capsys, monkeypatch, described_once):
    """The command, without a process of its own."""
    monkeypatch.setattr(command, "described", described_once)

    def call(*words):
        status = command.program([str(w) for w in words])
        return Done(status, *capsys.readouterr())
    return call


@pytest.fixture
def session(engines):
    with Session(engines) as s:
        yield s
