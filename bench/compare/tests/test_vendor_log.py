"""The vendor's libraries' own logs: lines of each version, calls beside each other, and the whole way with Plumbline's worker."""

import json

import pytest

from compare.ledger.parts import CONVERSION, VENDOR
from compare.ledger.vendor_log import Call, call_of, is_kept, shares, vendor_log_of
from compare.measuring import vendor_logs as keeping
from compare.measuring.engines import Variant
from compare.measuring.session import Measured, Plan
from compare.problems import catalogue
from compare.records import check
from compare.records.of_measured import record_of
from compare.report import vendor_logs
from compare.report.page import page

# As the libraries have printed them; the shapes, which nobody reads, are cut.
FROM_2_6 = "onednn_verbose,1795636797025.135986,exec,cpu,convolution,jit:avx512_core,forward_training,src_f32::blocked:abcd:f0 dst_f32::blocked:aBcd16b:f0,attr-scratchpad:user ,alg:convolution_direct,mb32_ic3oc16,3.5769"
FROM_2_6_WITHOUT_TIMES = "onednn_verbose,exec,cpu,convolution,jit_wino_4x3:avx512_core,forward_training,src_f32::blocked:aBcd16b:f0,attr-scratchpad:user ,alg:convolution_winograd,mb32_ic16oc16,1.25"
FROM_3_12 = "onednn_verbose,v1,1795636810583.868896,primitive,exec,cpu,convolution,jit:avx512_core,forward_training,src:f32:a:blocked:abcd::f0 wei:f32:a:blocked:Acdb16a::f0,attr-scratchpad:user,alg:convolution_direct,mb32_ic3oc16,0.251221"
REORDER_OF_3_12 = "onednn_verbose,v1,1795636810583.822021,primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:abcd::f0 dst:f32::blocked:Acdb16a::f0,attr-scratchpad:user,,16x3x3x3,0.00390625"
FROM_3_7 = "onednn_verbose,v1,1795636828690.332031,primitive,exec,cpu,convolution,brg_conv_fwd:avx512_core,forward_training,src:f32::blocked:acdb::f0,attr-scratchpad:user,alg:convolution_direct,mb32_ic3oc16,0.457031"
PRODUCT_OF_3_7 = "onednn_verbose,v1,1795636853029.438965,primitive,exec,cpu,gemm_api,,undef,src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 dst_f32::blocked:ab:f0,,,2352x27:27x16,0.106934"
FROM_1_X = "dnnl_verbose,exec,cpu,convolution,jit:avx2,forward_training,src_f32::blocked:abcd:f0,,alg:convolution_direct,mb1_ic3oc16,0.5"
FROM_MKL = "MKL_VERBOSE SGEMM(T,N,10,32,64,0x7fff8e249020,0x564b204ebf80,64,0x564b21e665c0,64,0x7fff8e249040,0x564b21e08e80,10) {} CNR:OFF Dyn:0 FastMM:1 TID:0  NThr:2"
NO_CALLS = ["onednn_verbose,info,oneDNN v2.6.3 (commit N/A)", "onednn_verbose,v1,info,graph,backend,0:dnnl_backend",
            "onednn_verbose,v1,primitive,info,template:operation,engine,primitive,implementation,prop_kind,memory_descriptors,attributes,exec_time",
            "onednn_verbose,v1,graph,exec,cpu,100002,convolution_post_ops,conv_0,,,strict,larger_partition_kernel_t,dnnl_backend,0.5",
            "MKL_VERBOSE oneMKL 2024.0 Update 2 Product build 20240605 for Intel(R) 64 architecture Intel(R) Architecture processors, Lnx 2.60GHz lp64 gnu_thread",
            FROM_3_12[:-8] + "WARNING: another thread", FROM_3_12[:90], ""]


@pytest.mark.parametrize("line, call", [
    (FROM_2_6, Call("oneDNN", "convolution", "jit:avx512_core", 3.5769e-3, 1795636797.025135986)),
    (FROM_2_6_WITHOUT_TIMES, Call("oneDNN", "convolution", "jit_wino_4x3:avx512_core", 1.25e-3)),
    (FROM_3_12, Call("oneDNN", "convolution", "jit:avx512_core", 0.251221e-3, 1795636810.583868896)),
    (REORDER_OF_3_12, Call("oneDNN", "reorder", "jit:uni", 0.00390625e-3, 1795636810.583822021)),
    (FROM_3_7, Call("oneDNN", "convolution", "brg_conv_fwd:avx512_core", 0.457031e-3, 1795636828.690332031)),
    (PRODUCT_OF_3_7, Call("oneDNN", "gemm_api", "", 0.106934e-3, 1795636853.029438965)),
    (FROM_1_X, Call("oneDNN", "convolution", "jit:avx2", 0.5e-3)),
    (FROM_MKL.format("2.02ms"), Call("MKL", "SGEMM", "", 2.02e-3)),
    (FROM_MKL.format("561.51us"), Call("MKL", "SGEMM", "", 561.51e-6)),
    (FROM_MKL.format("1.5s"), Call("MKL", "SGEMM", "", 1.5)),
    (FROM_MKL.format("430ns"), Call("MKL", "SGEMM", "", 430e-9)),
])
def test_a_line_is_a_call(line, call):
    found = call_of(line)
    assert found.seconds == pytest.approx(call.seconds) and found.began_s == (pytest.approx(call.began_s) if call.began_s else None)
    assert (found.library, found.primitive, found.implementation) == (call.library, call.primitive, call.implementation)


@pytest.mark.parametrize("line", NO_CALLS)
def test_other_lines_are_none(line):
    assert call_of(line) is None


def test_a_library_that_was_not_called_has_still_said_which_it_is():
    assert is_kept("Warning: slow\n" + NO_CALLS[0]) and is_kept(NO_CALLS[4])
    assert not is_kept("Warning: slow\nand that is all\n")


def test_calls_beside_each_other_share_their_time():
    """One from 0 to 4 s, one from 1 to 3, one from 10 to 11, and one of which the begin is not known."""
    calls = [Call("oneDNN", "a", "", 4.0, 0.0), Call("oneDNN", "b", "", 2.0, 1.0), Call("oneDNN", "c", "", 1.0, 10.0), Call("MKL", "d", "", 5.0)]
    assert shares(calls) == pytest.approx([3.0, 1.0, 1.0, 5.0])
    assert shares([]) == []


def test_the_log_is_of_one_step():
    text = "\n".join([REORDER_OF_3_12, FROM_3_12, FROM_MKL.format("2.02ms"), *NO_CALLS, FROM_MKL.format("1.98ms")])
    log = vendor_log_of(text, 2, 0.01)
    assert [(r.library, r.primitive, r.calls) for r in log.rows] == [("MKL", "SGEMM", 1), ("oneDNN", "convolution", 0.5), ("oneDNN", "reorder", 0.5)]
    assert log.kernels_s == pytest.approx({"MKL": 2e-3, "oneDNN": 0.1256105e-3}) and log.conversions_s == pytest.approx(0.00390625e-3 / 2)


ENVIRONMENT = {"processor": "P", "processors": 1, "threads": 1, "memory_bytes": 1, "f32_gflops": 100.0, "bf16_gflops": 100.0, "copy_gbytes": 10.0}
RUN = {"id": "t", "started": "2026-01-01T00:00:00+00:00", "command": None}


def test_the_whole_way(session):
    """Plumbline's worker on the vendor's kernels is logged, a framework of numpy has nothing to log, and the page shows both."""
    problem = catalogue.linear("large", (512, 512), (512, 512)).with_(direction="forward")
    all_found = session.measure(problem, [Variant("plumbline", "vendor"), Variant("fake", "good")], Plan(rounds=3, samples=1, logged=3))
    records = [json.loads(json.dumps(record_of(f, problem, "train", RUN, ENVIRONMENT))) for f in all_found]
    for r in records:
        check(r, "this")
    ours, theirs = (r["vendor_log"] for r in records)
    assert ours["steps"] == 3 and {r["library"] for r in ours["rows"]} == {"oneDNN"} and all(r["calls"] == int(r["calls"]) for r in ours["rows"])
    assert 0.1 * ours["whole_s"] < ours["kernels_s"]["oneDNN"] + ours["conversions_s"] <= ours["whole_s"]
    assert sum(r["seconds"] for r in ours["rows"]) == pytest.approx(ours["kernels_s"]["oneDNN"] + ours["conversions_s"])
    assert theirs == {"reason": "its libraries keep no log, as oneDNN and MKL would"}
    html = page(records)
    assert "own logs" in html and theirs["reason"] in html and ours["rows"][0]["implementation"] in html


@pytest.mark.parametrize("direction, packs", [("forward", False), ("forward_backward", True)])
def test_filters_are_packed_once_for_inference_and_in_each_step_of_a_training(session, direction, packs):
    """By oneDNN's kernels of plain images: among all of the vendor's, one that reorders images may be the fastest."""
    line = ("conv2d", "3x3", [(4, 16, 12, 12), (32, 16, 3, 3)], {"padding": "1"})
    (problem,) = (p.with_(direction=direction) for p in catalogue.forward_problems([line]))
    (found,) = session.measure(problem, [Variant("plumbline", "only:direct nhwc")], Plan(rounds=1, samples=1, logged=3))
    reorders = [r.calls for r in found.vendor_log.rows if r.primitive == "reorder"]
    assert all(calls >= 1 for calls in reorders) and bool(reorders) == packs, found.vendor_log.rows


def test_compiled_modes_are_left_out_where_a_plan_says_so(session):
    quick, full = Plan(logged=2, logs_compiled=False), Plan(logged=2)
    jax, usual, other = Variant("jax", "jit"), Variant("torch", "eager"), Variant("torch", "eager", "tcmalloc")
    assert [keeping.is_logged(v, quick) for v in (jax, usual, other)] == [False, True, False]
    assert [keeping.is_logged(v, full) for v in (jax, usual, other)] == [True, True, False] and not keeping.is_logged(usual, Plan())
    found = Measured(jax)
    keeping.keep(session, None, [found], quick, None)
    assert found.vendor_log == keeping.LEFT_OUT


def test_without_being_asked_nothing_is_logged(session):
    problem = catalogue.linear("small", (8, 16), (4, 16)).with_(direction="forward")
    (found,) = session.measure(problem, [Variant("plumbline", "vendor")], Plan(rounds=1, samples=1))
    assert found.vendor_log is None and record_of(found, problem, "train", RUN, ENVIRONMENT)["vendor_log"] is None


def test_a_side_that_dies_while_it_is_logged_has_a_sentence(session, monkeypatch):
    problem = catalogue.linear("small", (8, 16), (4, 16)).with_(direction="forward")
    monkeypatch.setattr("compare.measuring.vendor_logs.SETTINGS", {"PYTHONHOME": "/nowhere"})
    (found,) = session.measure(problem, [Variant("fake", "good")], Plan(rounds=1, samples=1, logged=1))
    assert found.rounds and "the process ended with status" in found.vendor_log


@pytest.mark.parametrize("sampled, said", [(0.0105, ""), (0.02, "apart: logged are 0.5 times the sampled"), (0.0, "apart: none was sampled")])
def test_the_page_says_where_log_and_ledger_are_apart(sampled, said):
    log = {"whole_s": 0.03, "kernels_s": {"oneDNN": 0.009, "MKL": 0.001}, "conversions_s": 0.002}
    assert vendor_logs.apart(log, {"whole_s": 0.03, "parts_s": {VENDOR: sampled, CONVERSION: 0.005}}) == said
