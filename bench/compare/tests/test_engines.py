"""Engines: what a worker is told by its environment, and which version is there."""

import pytest

from compare.measuring.engines import BENCH, TOLD, Variant

ALLOCATORS = ("MALLOC_", "GLIBC_TUNABLES", "TCMALLOC_")

SET = {"OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "true", "GOMP_SPINCOUNT": "20000", "KMP_BLOCKTIME": "1", "ONEDNN_JIT_PROFILE": "2"}


@pytest.fixture
def told(monkeypatch):
    for name in ("OMP_WAIT_POLICY", "OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA", "DNNL_VERBOSE", "MKL_CBWR", "TF_ENABLE_ONEDNN_OPTS", "XLA_FLAGS",
                 "JAX_ENABLE_X64", "TORCH_LOGS", "TORCHDYNAMO_DISABLE", "ATEN_CPU_CAPABILITY", "NVIDIA_TF32_OVERRIDE", "KMP_AFFINITY",
                 "GOMP_CPU_AFFINITY", "LD_PRELOAD", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("PLUMB_FAKE_BREAKS", "timer")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")


@pytest.mark.parametrize("engine", ["plumbline", "fake"])
def test_a_worker_is_told_what_the_harness_sets_and_nothing_by_the_users_shell(engines, told, engine):
    _, environment = engines.command(Variant(engine, "good"))
    assert {k: v for k, v in environment.items() if k.startswith(TOLD + ALLOCATORS)} == SET
    assert (environment["PLUMB_FAKE_BREAKS"], environment["CUDA_VISIBLE_DEVICES"]) == ("timer", "1")
    _, environment = engines.with_settings(ONEDNN_VERBOSE="2").command(Variant(engine, "good"))
    assert {k: v for k, v in environment.items() if k.startswith(TOLD + ALLOCATORS)} == {**SET, "ONEDNN_VERBOSE": "2"}
    _, environment = engines.untouched(engine)
    assert not any(k.startswith(TOLD + ALLOCATORS) for k in environment)


def test_packages_of_the_users_are_for_the_pythons_that_the_user_named(engines, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/theirs")
    folders = [engines.command(Variant("fake", "good"))[1]["PYTHONPATH"].split(":")]
    named = engines.with_settings()
    named.callers = ("fake",)
    folders += [named.with_settings().command(Variant("fake", "good"))[1]["PYTHONPATH"].split(":"), named.untouched("fake")[1]["PYTHONPATH"].split(":")]
    assert folders == [[str(BENCH)], [str(BENCH), "/theirs"], [str(BENCH), "/theirs"]]


@pytest.mark.parametrize("engine", ["plumbline", "fake", "another"])
def test_the_version_that_is_there_is_the_one_that_a_worker_says(engines, session, engine):
    assert engines.version(engine) == session.worker(Variant(engine, "good")).hello["version"]


def test_an_engine_answers_if_its_worker_starts_and_misses_nothing(engines):
    other = engines.with_settings()
    other.programs = {**engines.programs, "torch": "/nowhere", "jax": engines.programs["fake"]}  # whose Python has no JAX
    assert [other.answers(e) for e in ("plumbline", "fake", "torch", "jax", "tensorflow")] == [True, True, False, False, False]


def test_a_version_that_cannot_be_known_beforehand_is_none(engines):
    other = engines.with_settings()
    other.programs = {"jax": engines.programs["fake"], "torch": "/nowhere", "own": engines.programs["fake"]}
    assert [other.version(e) for e in ("jax", "torch", "own", "tensorflow")] == [None] * 4
