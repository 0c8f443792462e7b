#!/usr/bin/env python3
"""Of scripts/mutate_kernels and tests/mutants/run: what they find, what they call it, and what they refuse. Builds nothing."""

import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(path):
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.name, loader))
    loader.exec_module(module)
    return module


class MutateKernels(unittest.TestCase):
    def setUp(self):
        self.script = load(ROOT / "scripts" / "mutate_kernels")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refuses(self, call):
        with self.assertRaises(SystemExit) as end:
            call()
        self.assertEqual(end.exception.code, 2)

    def kernel(self, text):
        self.script.KERNELS = self.folder
        (self.folder / "a.cu").write_text(text)
        return self.script.mutants_of("a.cu")

    def test_a_body_begins_behind_the_parameters(self):
        found = self.kernel("__device__ void a(Sums<int{kWarp}>& s) {\n  __syncthreads();\n}\n__device__ void b();\nint c() { return d(1 < 2); }\n")
        self.assertEqual([(m.kind, m.line) for m in found], [("barrier", 2)])

    def test_a_barrier_of_no_function_is_refused(self):
        self.refuses(lambda: self.kernel("void a() { __syncthreads(); }\n"))
        self.assertEqual(self.kernel("// as __syncthreads(); does\n"), [])

    def test_what_looks_alike_has_keys_of_its_own(self):
        line = "  for (int some_long_name_of_an_index = 0; some_long_name_of_an_index < a.some_long_name_of_a_count; ++some_long_name_of_an_index) go();\n"
        one = self.kernel("__device__ void a() {\n" + line + "}\n")
        two = self.kernel("__device__ void a() {\n" + line + line + "}\n")
        self.assertEqual(len({m.key for m in two}), 2)
        self.assertEqual(two[0].key, one[0].key)

    def test_a_race_is_what_is_told_as_one(self):
        slot = self.script.Slot.__new__(self.script.Slot)
        slot.folder, slot.likely = self.folder, True
        slot.programs = lambda build, mutant, names: ({name: name for name in names}, None)
        race = self.script.collections.namedtuple("Race", "is_there")(True)
        mutant = self.script.Mutant("barrier", "pooling/pool2d.cu", 0, "", "", 1, "")

        def outcome(status, text):
            slot.run = lambda command, *_, **__: (status, text) if command[0] == self.script.RACES else (0, "")
            return slot.planted(mutant, None, race)[0]

        self.assertEqual(outcome(66, "WARNING: ThreadSanitizer: data race"), "caught")
        self.assertEqual(outcome(None, ""), "caught")
        self.assertEqual(outcome(1, "[  FAILED  ] EveryKernelTest.HasNoRaceInTheCases"), "survived")
        self.assertEqual(outcome(-6, ""), "survived")

    def test_the_baseline_has_the_program_of_races_where_it_is_to_see_something(self):
        asked = []
        self.script.Slot = lambda _: self.script.collections.namedtuple("Slot", "sees sees_race")(
            lambda program, _: asked.append(program.name), lambda program: asked.append(program.name) or ("value", "it"))
        build = self.script.collections.namedtuple("Build", "folder is_there")(self.folder, True)
        of_kind = lambda kind: [self.script.Mutant(kind, "pooling/pool2d.cu", 0, "", "", 1, "")]
        self.script.check_baseline(build, build, of_kind("bound"))
        self.assertNotIn(self.script.RACES, asked)
        self.refuses(lambda: self.script.check_baseline(build, build, of_kind("barrier")))
        self.assertIn(self.script.RACES, asked)

    def test_results_are_of_all_sources(self):
        self.script.ROOT = self.folder
        subprocess.run(["git", "init", "-q", self.folder], check=True)
        seen = [self.script.fingerprint()]
        for name, is_source in (("kernels/cuda/gemm/plan.cpp", True), ("tests/ops/a_test.cpp", True), ("docs/a.md", False),
                                ("tests/mutants/ops.txt", False)):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text("a")
            now = self.script.fingerprint()
            self.assertEqual(now != seen[-1], is_source, name)
            seen.append(now)

    def test_a_build_that_says_nothing_is_refused(self):
        build = self.script.Build(self.folder, self.script.CASES)
        self.refuses(build.read_commands)
        commands = self.folder / "compile_commands.json"
        commands.write_text("[]")
        self.refuses(build.read_commands)
        commands.write_text(json.dumps([{"file": str(self.script.KERNELS / "a.cu"), "command": "c++ plumb_emulated.dir"}]))
        self.refuses(build.read_commands)  # there is nothing of ninja


class Numbers(unittest.TestCase):
    def test_are_one_or_more(self):
        for script in ("scripts/mutate_kernels", "tests/mutants/run"):
            for option in ("--jobs", "--seconds") if script == "tests/mutants/run" else ("--jobs",):
                done = subprocess.run([ROOT / script, option, "0", "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, f"{option} 0: use 1 or more" in done.stderr), (2, True), (script, option))


if __name__ == "__main__":
    unittest.main()
