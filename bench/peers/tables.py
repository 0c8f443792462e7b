"""Makes tables of the reports that compare.py has written: FOLDER/README.md with every row of every report, and in a page of
Markdown, between <!-- peers FOLDER'S NAME --> and <!-- end of peers -->, one line a report: the fastest and the leanest mode beside
Plumbline.

    python tables.py docs/measured.md docs/results/*           # --check: changes nothing, fails where it would
"""

import argparse
import json
import pathlib
import re
import statistics

from protocol import percentile

END = "<!-- end of peers -->"


def ms_of(row):
    return statistics.median(row["ms"])


def spread(row):
    return f"{ms_of(row):.4g} ({percentile(row['ms'], 0.1):.4g}, {percentile(row['ms'], 0.9):.4g})"


def megabytes(row):
    return row["peak_rss_bytes"] / 1e6


def is_ours(row):
    return row["name"].startswith("plumbline")


def title(report):
    a = report["arguments"]
    libraries = " ".join(report["rows"][0]["info"]["environment"]["libraries"])
    return f"{a['model']}, batch {a['batch']}, {a['optimizer']}, {a['dtype']}, {a['threads']} threads, {libraries}"


def peers_of(report):
    return [r for r in report["rows"] if not is_ours(r)]


def modes(report):
    """The framework's, each once: without what was preloaded."""
    names = [r["name"].partition(" + ")[0].partition(" ")[2] for r in peers_of(report)]
    return ", ".join(dict.fromkeys(names))


def whole_table(name, report):
    ours = ms_of(report["rows"][0])
    a = report["arguments"]
    lines = [f"## {name}", "", f"{title(report)}; {a['rounds']} rounds of {a['steps']} steps in turn.", "",
             "| | ms a step (p10, p90) | times Plumbline's | peak MB |", "|---|---|---|---|"]
    for row in report["rows"]:
        lines.append(f"| {row['name']} | {spread(row)} | {ms_of(row) / ours:.2f} | {megabytes(row):.0f} |")
    return "\n".join(lines) + "\n"


def summary_line(name, report, link):
    own, peers = report["rows"][0], peers_of(report)
    fastest, leanest = min(peers, key=ms_of), min(peers, key=megabytes)
    others = "; ".join(f"{r['name'].removeprefix('plumbline ')} {ms_of(fastest) / ms_of(r):.2f}"
                       for r in report["rows"][1:] if is_ours(r))
    return (f"| [{name}]({link}) | {spread(own)} | {fastest['name']}: {spread(fastest)} | {modes(report)} | "
            f"**{ms_of(fastest) / ms_of(own):.2f}** | {others} | "
            f"{megabytes(own):.0f} of {megabytes(leanest):.0f}: {megabytes(own) / megabytes(leanest):.2f} |")


def summary(reports, folder):
    lines = ["| report | Plumbline eager, ms (p10, p90) | fastest mode of the framework | of its modes | times | "
             "other modes of Plumbline | peak MB, of the leanest mode's |", "|---|---|---|---|---|---|---|"]
    lines += [summary_line(name, report, f"{folder}/README.md#{name}") for name, report in reports.items()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path, help="the page with the marks of every folder")
    parser.add_argument("folders", type=pathlib.Path, nargs="+", help="of reports")
    parser.add_argument("--check", action="store_true", help="change nothing, and fail where something would")
    a = parser.parse_args()

    page, texts = a.page.read_text(), {}
    for folder in a.folders:
        reports = {f.stem: json.loads(f.read_text()) for f in sorted(folder.glob("*.json"))}
        texts[folder / "README.md"] = (
            "# Training steps beside the frameworks\n\nMade by bench/peers/tables.py from the reports of bench/peers/compare.py "
            "in this folder.\n\n" + "\n".join(whole_table(name, r) for name, r in reports.items()))
        table = summary(reports, folder.resolve().relative_to(a.page.resolve().parent).as_posix())
        begin = f"<!-- peers {folder.name} -->\n"
        page, found = re.subn(f"(?s){re.escape(begin)}.*?{END}", lambda _: f"{begin}\n{table}\n{END}", page)
        if found != 1:
            raise SystemExit(f"{a.page} has no place for the table: {begin.strip()} and {END}")
    for path, text in {**texts, a.page: page}.items():
        if path.exists() and path.read_text() == text:
            continue
        if a.check:
            raise SystemExit(f"{path} is not what the reports say; run tables.py without --check")
        path.write_text(text)


if __name__ == "__main__":
    main()
