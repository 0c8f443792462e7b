"""Tests of the comparison: on Plumbline and on a framework of numpy, without any that must be fetched.

    PLUMB_BENCH_WORKER=build/cpu/bin/plumb_bench_worker PYTHONPATH=bench pytest bench/compare/tests
"""

import dataclasses
import os
import sys

import pytest

from compare.__main__ import program
from compare.measuring.engines import Engines
from compare.measuring.session import Session


@pytest.fixture(scope="session")
def worker_program():
    return os.environ["PLUMB_BENCH_WORKER"]


@pytest.fixture(scope="session")
def engines(worker_program):
    programs = {"plumbline": worker_program, "fake": sys.executable, "another": sys.executable}
    return Engines(programs, threads=1, modules={"another": "fake"})


@dataclasses.dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def compare(capsys):
    """The command, without a process of its own."""
    def call(*words):
        status = program([str(w) for w in words])
        return Done(status, *capsys.readouterr())
    return call


@pytest.fixture
def session(engines):
    with Session(engines) as s:
        yield s
