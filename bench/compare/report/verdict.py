"""Who is faster, by rows that may be compared: same work, same run, both agreed and trusted."""

import collections
import dataclasses

from ..measuring.statistics import MOST_SPREAD, SAME, Ratio, geometric_mean, paired_spread, ratio_of
from ..records import machine_of, newest, told_apart

NAMES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}  # as their makers write them


def label(record):
    e = record["engine"]
    allocator = e.get("allocator") or ""
    return " ".join(p for p in (e["name"], e["mode"], "+ tcmalloc" if "tcmalloc" in allocator else "") if p)


def in_order(names):
    """Frameworks in the order of NAMES, then others."""
    return [n for n in NAMES if n in names] + sorted(n for n in names if n not in NAMES)


def is_ours(record):
    return record["engine"]["name"] == "plumbline"


def kernels_of(record):
    """ "best" or "vendor", of a record of Plumbline."""
    return record["engine"]["mode"].split()[0]


def is_timed(record):
    """Whether it is of work that is timed, and not an answer."""
    return record["subject"]["kind"] != "defaults"


def is_right(record):
    """Whether it is a time of work whose results agreed, measured here, whatever disturbed it."""
    return record["status"] == "measured" and not record.get("imported") and is_timed(record) and (record.get("correctness") or {}).get("agrees")


def counts(record):
    """Whether a verdict may rest on it. What was measured elsewhere never counts, whatever it says of itself."""
    return is_right(record) and record["trust"]["trusted"]


def variant_of(record):
    e = record["engine"]
    return e["name"], e.get("mode"), "tcmalloc" in (e.get("allocator") or "")


def turn_of(record):
    """Records of one turn at the same work were measured round by round: ratios are formed within it alone."""
    return record["run"]["id"], record["run"].get("turn", 0)


def turns(records, experiment):
    """{(machine, subject's id): {turn: [records]}}, of each engine those of the version that it had last."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    asked = [r for r in records if r["experiment"] == experiment and is_timed(r) and (r["status"] != "measured" or r.get("median_s"))]  # losses alone are no time
    for r in newest(asked):
        found[machine_of(r), r["subject"]["id"]][turn_of(r)].append(r)
    return found


def last_of(by_turn):
    """Of a variant that had several turns, in one run or in several, the last one's record."""
    return list({variant_of(r): r for members in by_turn.values() for r in members}.values())


def groups(records, experiment):
    """{(machine, subject's id): [records]}, one a variant."""
    return {key: last_of(by_turn) for key, by_turn in turns(records, experiment).items()}


def fastest(records):
    return min(records, key=lambda r: r["median_s"], default=None)


@dataclasses.dataclass
class Row:
    """One piece of work: the fastest mode of ours, of the vendor's kernels, and of each framework."""

    subject: dict
    ours: dict                # {"best": record, "vendor": record}
    frameworks: dict          # {"torch": its fastest record}
    ratios: dict              # {("best", "torch"): Ratio}
    left_out: list            # records that do not count


def rows(records, experiment):
    result = []
    for by_turn in turns(records, experiment).values():
        members = last_of(by_turn)
        ours = {k: fastest_of_ours(members, k) for k in ("best", "vendor")}
        names = sorted({r["engine"]["name"] for r in members if not is_ours(r)})
        of_name = {n: fastest_that_counts([r for r in members if r["engine"]["name"] == n]) for n in names}
        frameworks = {n: r for n, r in of_name.items() if r}
        ratios, left_out = {}, [r for r in members if not counts(r)]
        for n, theirs in frameworks.items():
            for k in ours:
                own = fastest_of_ours(by_turn[turn_of(theirs)], k)
                why = own and unpaired(own, theirs)
                if why:
                    left_out.append({**theirs, "trust": {"trusted": False, "reasons": [f"no ratio beside {label(own)}: {why}"]}})
                elif own:
                    ratios[k, n] = ratio_of(own["rounds_s"], theirs["rounds_s"])
        result.append(Row(members[0]["subject"], ours, frameworks, ratios, left_out))
    return result


def unpaired(*sides):
    """Why the rounds that both sides ran have no ratio, or None: a side may have been trusted by others that it had."""
    rounds = min(len(r["rounds_s"]) for r in sides)
    apart = paired_spread(*(r["rounds_s"] for r in sides))
    if apart > MOST_SPREAD:
        return f"in the {rounds} rounds that both ran, the quartiles are {apart:.0%} of the median apart"
    disturbed = max(sum(i < rounds for i in r["trust"].get("disturbed", ())) for r in sides)
    return f"of the {rounds} rounds that both ran, {disturbed} were disturbed" if disturbed > rounds / 2 else None


def fastest_that_counts(records):
    """The fastest of those that count. None where one that does not is clearly faster: the second would be taken for the first."""
    able, mistrusted = fastest([r for r in records if counts(r)]), fastest([r for r in records if is_right(r) and not counts(r)])
    if able and mistrusted and mistrusted["median_s"] * (1 + SAME) < able["median_s"]:
        return None
    return able


def fastest_of_ours(records, kernels):
    return fastest_that_counts([r for r in records if is_ours(r) and kernels_of(r) == kernels])


def summary(all_rows, kernels, framework):
    """Means over the rows that both have, and how many there are of each verdict. Of the vendor's kernels no row counts that has no ratio of
    the best: what stands beside each other is of the same rows, but for those that it is said to lack."""
    ratios = [r.ratios[kernels, framework] for r in all_rows if {("best", framework), (kernels, framework)} <= r.ratios.keys()]
    verdicts = collections.Counter(ratio.verdict for ratio in ratios)
    values = [ratio.value for ratio in ratios]
    return {"count": len(values), "geometric": geometric_mean(values), "arithmetic": sum(values) / len(values) if values else None,
            **{v: verdicts.get(v, 0) for v in ("faster", "slower", "same", "ambiguous")}}


def of_fewer(best, vendor):
    """How many rows the vendor's mean is of, where those are not all of the best's."""
    return f" of {vendor['count']} rows" if vendor["count"] < best["count"] else ""


def microseconds(s):
    """A time in the unit that suits it."""
    us = s * 1e6
    return f"{us:.3g} µs" if us < 1000 else f"{us / 1e3:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"


def name_of(subject):
    batch = f", batch {subject['batch']}" if subject.get("batch") else ""
    optimizer = f", {subject['optimizer']}" if subject.get("optimizer") else ""
    problem = "" if subject["kind"] == "network" and subject["problem"] == subject["name"] else f" {subject['problem']}"
    about = subject.get("attributes") or {} if subject["kind"] == "network" else {}
    more = f", {about['steps']} steps" if "steps" in about else ""
    if "initial" in about:  # a training by epochs
        more = f", initial weights of {about['initial']}, pixels {about['pixels']}"
    return f"{subject['name']}{problem} {subject['direction']}, {subject['dtype']}{batch}{optimizer}{more}"


def times(ratio: Ratio):
    return f"{ratio.value:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"


def modes_of(records, experiment, framework):
    """The modes of a framework that its rows are of, as they are called: some of them in all rows."""
    measured = [r for members in groups(records, experiment).values() for r in members if r["engine"]["name"] == framework and is_right(r)]
    return list(dict.fromkeys(label(r).removeprefix(framework).strip() for r in measured))


def in_fastest(modes):
    """In which mode a framework is the fastest; which there were says how much that means."""
    return f"in its mode {modes[0]}" if len(modes) == 1 else f"in the fastest of its modes {', '.join(modes)}"


def modes_in_words(records, experiment, names):
    """The sentence of which modes each framework was measured in; empty if none was."""
    measured = [f"{NAMES.get(n, n)}: {', '.join(modes)}" for n in names if (modes := modes_of(records, experiment, n))]
    return f"Measured modes, of which the fastest counts: {'; '.join(measured)}." if measured else ""


def behind_of(experiment, all_rows):
    """The sentence of where the best kernels are furthest behind, in a list; none if they nowhere are."""
    behind = [(ratio.value, n, row) for row in all_rows for (k, n), ratio in row.ratios.items() if k == "best" and ratio.verdict == "slower"]
    if not behind:
        return []
    value, n, row = min(behind, key=lambda b: b[0])
    return [f"{experiment}: furthest behind {n}: {name_of(row.subject)}, {value:.2f}"]


def uncounted(records, experiments):
    """The sentence of how many rows do not count, in a list."""
    last = [r for e in experiments for members in groups(records, e).values() for r in members if not r.get("imported")]
    left_out = [r for r in last if not counts(r)]
    return [f"{len(left_out)} of {len(last)} rows do not count: the page says why of each"] if left_out else []


def of_versions(records, experiments):
    """The sentence of how many versions of Plumbline the rows of these experiments are of, in a list; none if it is one."""
    versions = {r["engine"].get("version") for e in experiments for members in groups(records, e).values() for r in members if is_ours(r) and counts(r)}
    return [f"the rows are of {len(versions)} versions of Plumbline: the page's end names them"] if len(versions) > 1 else []


def lines_of(records, experiments, aside=()):
    """The verdict on one machine's records. Experiments that are `aside` hold no framework against Plumbline."""
    lines = []
    for experiment in experiments:
        if experiment in aside:
            continue
        all_rows = rows(records, experiment)
        for n in sorted({n for r in all_rows for n in r.frameworks}):
            best, vendor = (summary(all_rows, k, n) for k in ("best", "vendor"))
            if not best["count"]:
                continue
            beside = f", {vendor['geometric']:.2f} times the vendor's alone{of_fewer(best, vendor)}," if vendor["count"] else ""
            lines.append(f"{experiment}: {n} takes {best['geometric']:.2f} times as long as the best kernels{beside} {in_fastest(modes_of(records, experiment, n))} "
                         f"({best['count']} rows: Plumbline faster in {best['faster']}, slower in {best['slower']}, no difference in {best['same']}, unclear in {best['ambiguous']})")
        lines += behind_of(experiment, all_rows)
    return lines + uncounted(records, experiments) + of_versions(records, [e for e in experiments if e not in aside])


def ten_lines(records, experiments, aside=()):
    """The verdict for a terminal: ten lines at most, each of one machine. `aside` as in lines_of."""
    machines = told_apart([r for r in records if not r.get("imported")])
    lines = []
    for number, own in enumerate(machines, 1):
        where = f"machine {number}, {own[0]['environment']['processor']}: " if len(machines) > 1 else ""
        lines += [where + line for line in lines_of(own, experiments, aside)]
    imported = len(records) - sum(map(len, machines))
    last = [f"{imported} rows were measured elsewhere: the page shows them, and no ratio is formed with them"] if imported else []
    if len(lines) + len(last) > 10:
        last = [f"the page says {len(lines) + len(last) - 9} more", *last]
    return lines[:10 - len(last)] + last
