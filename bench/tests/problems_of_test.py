"""Problems of other benchmarks, and what they are as ours.  python problems_of_test.py PROBLEMS_OF PLUMB_BENCH_OPS"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT, PROGRAM = sys.argv[1:3]

# What a line leaves out: the width is the height's, the output follows from the padding, or the padding from the output.
LINES = {
    'g2mb4ic6ih9oc8oh5kh3sh2ph1n"some:name"': "conv2d some:name 4x6x9x9 8x3x3x3 stride=2x2 padding=1x1x1x1 groups=2",
    'ic3ih8oc4kh3ph1n"a"': "conv2d a 2x3x8x8 4x3x3x3 padding=1x1x1x1",
    'ic3ih8oc4oh8kh3n"b"': "conv2d b 2x3x8x8 4x3x3x3 padding=1x1x1x1",
    'ic3ih224oc64oh112kh7sh2ph3n"c"': "conv2d c 2x3x224x224 64x3x7x7 stride=2x2 padding=3x2x3x2",
    'ic8ih7oc8oh7kh3dh1ph2n"d"': "conv2d d 2x8x7x7 8x8x3x3 dilation=2x2 padding=2x2x2x2",
    'mb1ic2iw9oc4kw3n"flat"': "conv2d flat 1x2x1x9 4x2x1x3",
    '--dir=FWD_B mb8ic16ih4oc10n"ip"': "linear ip 8x256 10x256",
    'mb8ic16ih4oh2kh2sh2ph0n"pool"': "pool2d pool 8x16x4x4 kernel=2x2 stride=2x2",
    'mb8ic16ih4n"bnorm"': "tensor bnorm 8x16x4x4",
    '2x3x4n"tensor"': "tensor tensor 2x3x4",
    '5x6:6x7n"product"': "matmul product 5x6 6x7",
    "std::make_tuple(700, 161, 1, 4, 32, 20, 5, 0, 0, 2, 2),":
        "conv2d deepbench_700_161_1_4_32_20_5_0_0_2_2 4x1x161x700 32x1x5x20 stride=2x2",
    # Column-major C (35, 70) = A (35, 48) B^T (70, 48) is row-major C^T (70, 35) = B A^T.
    "35 70 48 0 1": "matmul deepbench_35_70_48_0_1 48x70 48x35 transpose_a=1",
    "std::make_tuple(9, 8, 7, true, false)": "matmul deepbench_9_8_7_1_0 8x7 9x7 transpose_b=1",
}
REFUSED = {
    "mb2ic3id5ih5oc4kh3": "three spatial dimensions",
    "what": '"what" is no problem',
    "1 2 3": "there are 3 numbers",
    "ic3ih5q4": '"q" is unknown',
    "mb2ih5oc4kh3": "ic is missing",
    "-1 2 3 0 0": "less than 0",
    "mb0ic3ih8oc4oh8kh3ph1": "mb is 0",
    "ic3ih8oc4kh3sh0": "sh is 0",
    "0x5": '"0x5" is neither',
    "2x:3x4": '"2x" is neither',
    "0 3 2 0 0": "a size is 0",
    "700 161 1 4 32 20 5 0 0 0 2": "a stride is 0",
    "mb1mb2ic3": "mb is there twice",
    "mb1ic3ih32oc4oh5kh3ph1": "said to be 5, and is 31",
    "mb1ic3ih8oc4oh100kh3ph1": "more than 8 gives",
    "ic8ih2oc4kh5ph0": "does not fit into 2",
    "5 5 1 1 1 9 9 0 0 1 1": "does not fit into 5",
    'ic3ih8oc4kh3n"abc': "two quotes",
    'n"abc"': "two quotes",
    "mb1ic3ih8kh3dh1": "a pooling has no dilation",
    "g2mb1ic3ih8oc4kh3": "2 groups do not divide",
}


def problems_of(text):
    return subprocess.run([sys.executable, SCRIPT], input=text, capture_output=True, text=True, check=False)


class ProblemsOf(unittest.TestCase):
    def test_lines_become_ours(self):
        made = problems_of("# a comment\n" + "\n".join(LINES))
        self.assertEqual(made.stdout.splitlines(), list(LINES.values()), made.stderr)

    def test_they_are_problems_of_the_benchmarks(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "problems.txt"
            file.write_text(problems_of("\n".join(LINES)).stdout)
            listed = subprocess.run([PROGRAM, "--shapes", file, "--benchmark_list_tests"], capture_output=True, text=True,
                                    check=False)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("some:name", listed.stdout)

    def test_each_problem_comes_once_and_has_a_name_of_its_own(self):
        made = problems_of('ic3ih8oc4kh3ph1n"a"\nic3ih8oc4kh3ph1n"a"\nic5ih8oc4kh3ph1n"a"\nmb8ic16oc10n"a"\nmb8ic16n"a"').stdout
        self.assertEqual([line.split()[:3] for line in made.splitlines()],
                         [["conv2d", "a", "2x3x8x8"], ["conv2d", "a_2", "2x5x8x8"], ["linear", "a_3", "8x16"], ["tensor", "a", "8x16"]])

    def test_what_is_none_is_refused_with_its_line(self):
        for line, part in REFUSED.items():
            made = problems_of("\n" + line)
            self.assertIn("line 2: ", made.stderr, line)
            self.assertIn(part, made.stderr)
            self.assertEqual((made.returncode, made.stdout), (2, ""))

    def test_no_problems_and_no_file_are_refused(self):
        self.assertEqual(problems_of("# a comment\n").returncode, 2)
        made = subprocess.run([sys.executable, SCRIPT, "/nowhere/x"], capture_output=True, text=True, check=False)
        self.assertEqual((made.returncode, made.stderr), (2, "problems_of.py: /nowhere/x: No such file or directory\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
