"""Tests of the comparison: on Plumbline and on a framework of numpy, without any that must be fetched.

    PLUMB_BENCH_WORKER=build/cpu/bin/plumb_bench_worker PYTHONPATH=bench pytest bench/compare/tests
"""

import os
import sys

import pytest

from compare.measuring.engines import Engines
from compare.measuring.session import Session


@pytest.fixture(scope="session")
def worker_program():
    return os.environ["PLUMB_BENCH_WORKER"]


@pytest.fixture(scope="session")
def engines(worker_program):
    programs = {"plumbline": worker_program, "fake": sys.executable, "another": sys.executable}
    return Engines(programs, threads=1, modules={"another": "fake"})


@pytest.fixture
def session(engines):
    with Session(engines) as s:
        yield s
