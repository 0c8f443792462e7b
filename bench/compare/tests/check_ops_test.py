"""check_ops_test.py CHECK_OPS: its verdicts and its exit status, on reports that are made here."""

import json
import pathlib
import subprocess
import sys
import tempfile


def main():
    with tempfile.TemporaryDirectory() as folder:
        causes = pathlib.Path(folder, "causes.txt")
        causes.write_text("# comment\n^slow/\tit is slow\n")

        def check(text):
            file = pathlib.Path(folder, "report.json")
            file.write_text(text)
            return subprocess.run([sys.executable, sys.argv[1], str(file), "--causes", str(causes)], capture_output=True, text=True)

        def report(**times):
            rows = [{"run_type": "iteration", "run_name": f"{op}/forward/cpu/nhwc/f32/{algorithm}/shape", "min_us": us}
                    for op, pair in times.items() for algorithm, us in pair.items()]
            return json.dumps({"benchmarks": rows})

        def expect(result, status, words):
            said = result.stdout + result.stderr
            if result.returncode != status or words not in said:
                sys.exit(f"status {result.returncode} instead of {status}, or no \"{words}\" in:\n{said}")

        good = {"measured": 100, "copy_floor": 90}
        slow = {"measured": 100, "copy_floor": 70}
        expect(check(report(relu=good)), 0, "0 exceptions of 1 rows")
        expect(check(report(relu=good, slow=slow)), 0, "it is slow")
        expect(check(report(relu=slow)), 1, "NO CAUSE IS KNOWN")
        expect(check(report(conv2d={"measured": 104, "raw_same": 100})), 1, "1.040")
        expect(check(report(conv2d={"measured": 10.2, "raw_same": 10})), 0, "0 exceptions of 1 rows")  # less than 0.3 us more
        expect(check("{"), 2, "report.json is not a whole report")
        expect(check(report()), 2, "there are no rows")
        for spoilt, words in (("^slow/\tit is slow\n\n^relu/ it is slow\n", "causes.txt, line 3: there is no tab"),
                              ("# comment\n^(slow/\tit is slow\n", "causes.txt, line 2: ^(slow/ is no regular expression"),
                              ("^slow/\tit is slow \xff\n", "causes.txt is not text"), (None, "causes.txt: No such file")):
            causes.write_bytes(spoilt.encode("latin-1")) if spoilt else causes.unlink()
            for rows in (report(relu=good), report(relu=slow)):
                refused = check(rows)
                expect(refused, 2, words)
                if refused.stdout or refused.stderr.count("\n") != 1:
                    sys.exit(f"more than one sentence:\n{refused.stdout}{refused.stderr}")


if __name__ == "__main__":
    main()
