"""Which part of a step a running function belongs to: the first rule that fits the innermost function that has one."""

import re

VENDOR, OWN, CONVERSION, MEMORY, HOST, WAIT, IDLE, ELSEWHERE, UNEXPLAINED = (
    "vendor kernels", "own kernels", "conversions", "memory", "host", "waiting", "idle", "elsewhere", "unexplained")
PARTS = {
    VENDOR: "kernels of the vendor's libraries: oneDNN, MKL",
    OWN: "the framework's own kernels, compiled ones included",
    CONVERSION: "conversions of layout and format, and copies",
    MEMORY: "page faults, allocation and release",
    HOST: "the host's work: the interpreter, dispatch, the tape",
    WAIT: "threads that wait without work for each other or for a GPU, spinning included",
    IDLE: "no thread runs: all sleep",
    ELSEWHERE: "no thread runs: the processors were taken for other programs",
    UNEXPLAINED: "functions that no rule knows, or that have no name",
}

# "FUNCTION (LIBRARY)", innermost first. Functions of the C library are passed over: their callers say what they are for.
RULES = [(part, re.compile(pattern)) for part, pattern in (
    (MEMORY, r"^(_int_|__libc_)?(malloc|calloc|realloc|c?free|memalign|mid_memalign|free_merge_chunk|free_chunk)|^(_int_free|_mid_memalign|"
             r"posix_memalign|aligned_alloc|sysmalloc|systrim|unlink_chunk|malloc_consolidate|operator (new|delete))|^tc_|tcmalloc"),
    (CONVERSION, r"reorder|jit_single_blk_kernel|direct_copy_kernel|at::native::.*copy_kernel|omatcopy|ynn::transpose|"
                 r"tensorflow::.*[Tt]ranspose|plumb::cpu::.*([Tt]ranspose|[Cc]onvert|to_layout|strided_copy)|"
                 r"^(copy_|_strided_to|_aligned_strided|_contig_to|_aligned_contig|raw_array_assign|npy_copy|_swap).*\(_multiarray"),
    (VENDOR, r"^_?jit_|^rtus_driver_t|_utils::jit_|dnnl|\(libdnnl|^_?mkl_|\bmkl_|libmkl"),
    (WAIT, r"ThreadPoolTempl|RunQueue|EventCount|WaitForWork|gomp_|^GOMP_barrier|\[unknown\] \(libgomp|__kmp|\(libiomp|\(libomp|pthread_(cond|mutex|barrier)|"
           r"^_*(futex|lll_)|sem_wait|sched_yield|nanosleep|^cu(da)?(Stream|Event|Ctx|Device)Synchronize|BlockingCounter|absl::.*(Mutex|Wait)|nsync"),
    (OWN, r"^kernel(\._omp_fn|\()|\.main\.so\)|at::native::.*(kernel|Kernel|lambda|AVX|DEFAULT|cpu_|vectorized|loop)|at::vec|invoke_parallel|"
          r"c10::function_ref|serial_for_each|cpublas|Eigen::|tensorflow::.*([Ff]unctor|Col2im|Im2col|Op<|Op::|launch)|ynn::|slinky::|"
          r"xla::cpu.*[Rr]untime|__xla_cpu|xnn_|plumb::cpu::|plumb::functors|plumb::.*(update_range|update_all|::kernel)|"
          r"\[unknown\] \((perf-\d+\.map|\[JIT\].*|//anon|memfd:.*)\)"),
    (HOST, r"\(libpython|\(python|_Py|\(libtorch_python|torch::|c10::|at::|\(libc10|caffe2::|tensorflow::|tsl::|absl::|xla::|pjrt|PJRT|nanobind|"
           r"pybind11|jax|\(_pywrap|\(libtensorflow|\(libjax|\(_multiarray|plumb::|nlohmann|\(ld-linux|\(plumb_bench_worker"),
)]
PASSED_OVER = re.compile(r"\((libc\.so|libm\.so|libstdc\+\+|libgcc|libpthread|\[vdso\])")

KERNEL = re.compile(r"\[kernel|\[guest\.kernel|kallsyms")
KERNEL_RULES = [(part, re.compile(pattern)) for part, pattern in (
    (MEMORY, r"page_fault|sys_(mmap|munmap|madvise|brk|mremap|mprotect)|mm_fault|clear_page"),
    (WAIT, r"sys_(futex|sched_yield|epoll|poll|nanosleep|clock_nanosleep|wait)|do_futex|futex_"),
)]
INTERRUPT = re.compile(r"sysvec|asm_common_interrupt|irq")


def of_kernel(frames):
    """The part of a sample in the operating system, by how it was entered; None for an interrupt, which is nobody's."""
    entries = " ".join(function for function, _ in frames)
    for part, pattern in KERNEL_RULES:
        if pattern.search(entries):
            return part
    return None if INTERRUPT.search(entries) else HOST


def part_of(frames):
    """(part, function that decided) of a sample's frames."""
    inside = [f for f in frames if KERNEL.search(f[1])]
    part = of_kernel(inside) if inside else None
    if part:
        return part, inside[0][0]
    outside = frames[len(inside):]
    is_copy = bool(outside) and re.match(r"_*mem(cpy|move)", outside[0][0]) is not None
    for function, library in outside:
        text = f"{function} ({library})"
        found = next((p for p, pattern in RULES if pattern.search(text)), None)
        if found is None or (found != MEMORY and PASSED_OVER.search(text)):
            continue
        return (CONVERSION, outside[0][0]) if is_copy and found == HOST else (found, function)
    return (CONVERSION, outside[0][0]) if is_copy else (UNEXPLAINED, outside[0][0] if outside else "no frame")
