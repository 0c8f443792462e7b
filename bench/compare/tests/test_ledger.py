"""The ledger: whose function is whose, and times that add up to the step."""

import shutil
import subprocess
from types import SimpleNamespace

import pytest

from compare.audit import faults
from compare.ledger import take_apart
from compare.ledger.parts import CONVERSION, ELSEWHERE, HOST, IDLE, MEMORY, OWN, UNEXPLAINED, VENDOR, WAIT, part_of
from compare.ledger.sampler import Sample, Sampler, Switch, Unavailable
from compare.measuring.engines import Variant
from compare.measuring.session import Plan
from compare.problems import catalogue
from compare.records.of_measured import computing

pytestmark = pytest.mark.timed
CONVOLUTION, PYTHON = ("jit_avx2_conv_fwd_kernel_f32.3", "perf-12.map"), ("_PyEval_EvalFrameDefault", "libpython3.11.so.1.0")


@pytest.mark.parametrize("part, frames", [
    (VENDOR, [CONVOLUTION]),
    (VENDOR, [("_jit_avx512_core_f32_wino_conv_4x3_data_kernel.42", "perf-12.map")]),
    (VENDOR, [("rtus_driver_t.7", "perf-12.map")]),
    (VENDOR, [("mkl_blas_def_sgemm_kernel_0_zen", "libtorch_cpu.so")]),
    (VENDOR, [("[unknown]", "libdnnl.so.2.6")]),
    (CONVERSION, [("jit_uni_reorder_kernel_f32.16", "perf-12.map")]),
    (CONVERSION, [("c10::function_ref<void (char**)>::callback_fn<at::native::AVX2::direct_copy_kernel(...)", "libtorch_cpu.so")]),
    (CONVERSION, [("plumb::cpu::tiles::transpose_tile<unsigned int>", "plumb_bench_worker")]),
    (OWN, [("at::native::(anonymous namespace)::cpu_max_pool_channels_last<float, false>", "libtorch_cpu.so")]),
    (OWN, [("kernel._omp_fn.0", "cedkuk2tlpopg.main.so")]),
    (OWN, [("[unknown]", "perf-12.map")]),
    (OWN, [("plumb::cpu::winograd::multiply_panel<4>", "plumb_bench_worker")]),
    (OWN, [("__memset_avx2_unaligned_erms", "libc.so.6"), ("tensorflow::MaxPoolingOp<float>::Compute", "libtensorflow_cc.so.2")]),
    (MEMORY, [("clear_page_erms", "[kernel.kallsyms]"), ("asm_exc_page_fault", "[kernel.kallsyms]"), CONVOLUTION]),
    (MEMORY, [("_int_malloc", "libc.so.6"), PYTHON]),
    (WAIT, [("futex_wake", "[kernel.kallsyms]"), ("__x64_sys_futex", "[kernel.kallsyms]"), CONVOLUTION]),
    (WAIT, [("[unknown]", "libgomp.so.1.0.0")]),
    (WAIT, [("Eigen::ThreadPoolTempl<tsl::Environment>::WorkerLoop(int)", "libtensorflow_framework.so.2")]),
    (VENDOR, [("handle_softirqs", "[kernel.kallsyms]"), ("asm_sysvec_apic_timer_interrupt", "[kernel.kallsyms]"), CONVOLUTION]),
    (HOST, [PYTHON]),
    (CONVERSION, [("__memmove_avx_unaligned_erms", "libc.so.6"), PYTHON]),
    (VENDOR, [("__memmove_avx_unaligned_erms", "libc.so.6"), ("dnnl::impl::cpu::gemm()", "libtorch_cpu.so")]),
    (UNEXPLAINED, [("something", "libother.so")]),
    (UNEXPLAINED, []),
])
def test_a_function_belongs_to_a_part(part, frames):
    assert part_of(frames)[0] == part


def samples(thread, times, frame):
    return [Sample(thread, t, [frame]) for t in times]


def test_the_parts_add_up_to_the_step():
    """Two threads convolve from 0 to 10 ms; one copies until 14; then all sleep until 20, and the processors are elsewhere until 22."""
    copying = ("__memmove_avx_unaligned_erms", "libc.so.6")
    seen = samples(1, [0.001 * i for i in range(1, 11)], CONVOLUTION) + samples(2, [0.0005 + 0.001 * i for i in range(10)], CONVOLUTION)
    seen += samples(1, [0.0112, 0.0124, 0.0138], copying)
    switches = [Switch(2, 0.010, False, False), Switch(1, 0.014, False, False), Switch(1, 0.018, True, False), Switch(1, 0.020, False, True)]
    ledger = take_apart(seen, sorted(switches, key=lambda s: s.time_s), 0.0, 0.022, 2, 0.014)
    assert ledger.whole_s == pytest.approx(0.011)
    assert sum(ledger.parts_s.values()) == pytest.approx(0.011)
    assert ledger.parts_s[VENDOR] == pytest.approx(0.005) and ledger.threads[VENDOR] == pytest.approx(2)
    assert ledger.parts_s[CONVERSION] == pytest.approx(0.003) and ledger.threads[CONVERSION] == pytest.approx(1)
    assert ledger.parts_s[IDLE] == pytest.approx(0.002) and ledger.parts_s[ELSEWHERE] == pytest.approx(0.001)
    assert ledger.functions[VENDOR] == [(CONVOLUTION[0], pytest.approx(0.005))]
    assert ledger.unexplained == pytest.approx(0) and ledger.seen == pytest.approx(26 / 28)
    assert computing(SimpleNamespace(ledger=ledger), {"device": "cpu"}) == pytest.approx(5 / 11)
    assert computing(SimpleNamespace(ledger=ledger), {"device": "cuda"}) is None  # what the host was seen doing


def test_what_no_rule_knows_is_unexplained():
    ledger = take_apart(samples(1, [0.001, 0.002, 0.003, 0.004], ("f", "libother.so")), [], 0.0, 0.004, 1, 0.004)
    assert ledger.unexplained == pytest.approx(1) and ledger.parts_s == {UNEXPLAINED: pytest.approx(0.004)}


@pytest.mark.parametrize("missing, sentence", [("perf", "perf is not installed"), ("c++filt", r"c\+\+filt is not installed")])
def test_without_a_program_there_is_a_sentence(missing, sentence, monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else f"/usr/bin/{name}")
    with pytest.raises(Unavailable, match=sentence):
        Sampler(1, tmp_path / "seen")


def test_an_interrupt_that_perf_has_had_too_stays_one(tmp_path):
    sampler = Sampler.__new__(Sampler)
    sampler.process = subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with pytest.raises(KeyboardInterrupt), sampler:  # it ends without an answer
        raise KeyboardInterrupt
    assert sampler.process.poll() is not None


TRIES = 5  # a machine that does other work may hide what is there


def test_a_product_is_found_where_it_is(session):
    problem = catalogue.linear("large", (512, 512), (512, 512)).with_(direction="forward")
    for _ in range(TRIES):
        (found,) = session.measure(problem, [Variant("plumbline", "vendor")], Plan(rounds=1, samples=1, least_s=0.01, apart_s=0.3))
        if isinstance(found.ledger, str):
            pytest.skip(found.ledger)
        most = max((s, part) for part, s in found.ledger.parts_s.items() if part not in (IDLE, ELSEWHERE))[1]
        if found.ledger.seen > 0.7 and abs(found.ledger.unexplained) < 0.1 and most == VENDOR:
            return
    assert False, found.ledger


def test_injected_costs_are_found(session):
    problem = catalogue.linear("small", (64, 256), (256, 256)).with_(direction="forward")
    for _ in range(TRIES):
        try:
            found = faults.find(session, problem, [Variant("plumbline", "best")], 0.5)
        except faults.Unseen as why:
            pytest.skip(str(why))
        assert [f.fault for f in found] == list(faults.FAULTS)
        if all(f.off <= faults.MOST_OFF for f in found):
            return
    assert False, found
