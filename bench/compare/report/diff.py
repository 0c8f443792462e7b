"""Two sets of records, row by row: which rows of the second are faster, slower, the same, or unclear; and whether both say the same of
Plumbline beside the frameworks."""

import dataclasses

from ..measuring.statistics import SAME, Ratio, among_many, beyond, ratio_of_runs
from ..records import FALLBACK, machine_of
from . import verdict

# What lines() end with.
RULE = ("slower or faster is what is more than {:.0f} % beyond 1 by both runs' rounds drawn again (95 %), and by Welch's test, corrected for {} rows "
        "(Benjamini and Hochberg): where nothing has changed, one comparison in twenty at most has any")


@dataclasses.dataclass
class Row:
    """How many times as long the second takes as the first, and in a word what that comes to."""

    name: str
    ratio: Ratio
    word: str
    mistrusted: str = ""  # why the second does not count, where the first does: then its word is no verdict
    fails: bool = False   # its rounds are slower, trusted or not


def key_of(record):
    return record["experiment"], record["subject"].get("id") or verdict.name_of(record["subject"]), verdict.label(record), machine_of(record)


def name_of(record):
    return f"{record['experiment']}: {verdict.name_of(record['subject'])}, {verdict.label(record)}"


def measured(records, which=verdict.counts):
    """{(experiment, subject, engine, machine): record}, the last of each that counts, of the run that was last: one before may be of another
    version. Two machines have no row in common. Losses alone are no time."""
    timed = [r for r in records if verdict.is_timed(r) and (r["status"] != "measured" or r.get("median_s"))]
    last = {key_of(r): r["run"]["id"] for r in timed}
    return {key_of(r): r for r in timed if which(r) and r["run"]["id"] == last[key_of(r)]}


def gone(before, after):
    """Sentences, of what counts in the first and was asked for in the second: it has no time any more, does not compute the same, or has
    fallen back to plain loops."""
    first, last = measured(before), {key_of(r): r for r in after if verdict.is_timed(r) and not r.get("imported")}
    return [f"{name_of(first[key])}: {why}" for key, r in last.items() if key in first and (why := why_gone(r))]


def why_gone(record):
    """None where it is not."""
    if not verdict.is_right(record):
        return record.get("reason") or (record.get("correctness") or {}).get("reason") or "it has no time any more"
    return FALLBACK if FALLBACK in record["trust"]["reasons"] else None


def still_timed(record):
    """Whether it has a time of the same work, though it may be mistrusted; gone() has the others."""
    return verdict.is_right(record) and not why_gone(record)


def of_hosts(before, after):
    """The sentence, in a list, that two runs which may be compared are of two machines of one kind."""
    first, second = ({r["environment"].get("host") for r in records} - {None} for records in (before, after))
    names = [" and ".join(sorted(hosts)) for hosts in (first, second)]
    both = all(names) and first != second
    return [f"the first is of the host {names[0]}, the second of {names[1]}: times of two machines of one kind may differ by themselves"] if both else []


def diff(before, after):
    """[Row] of what counts in the first and has a time in the second. Of hundreds of rows some are apart by chance, so that each has to be
    the clearer the fewer are."""
    first, second = measured(before), measured(after, still_timed)
    names = {key: name_of(first[key]) for key in first if key in second}
    whys = ["" if verdict.counts(second[key]) else "; ".join(second[key]["trust"]["reasons"]) or "not trusted" for key in names]
    rounds = [(first[key]["rounds_s"], second[key]["rounds_s"]) for key in names]
    slower, faster = among_many([beyond(a, b) for a, b in rounds]), among_many([beyond(b, a) for a, b in rounds])
    rows = []
    for name, why, (a, b), is_slower, is_faster in zip(names.values(), whys, rounds, slower, faster):
        ratio = ratio_of_runs(a, b)
        word = word_of(ratio, {"faster": is_slower, "slower": is_faster})
        rows.append(Row(name, ratio, "ambiguous" if why else word, why, word == "slower"))
    return rows


WORDS = {"faster": "slower", "slower": "faster", "same": "same", "ambiguous": "ambiguous"}  # of the first; here of the second


def word_of(ratio, is_clear):
    return WORDS[ratio.verdict] if is_clear.get(ratio.verdict, True) else "ambiguous"


@dataclasses.dataclass
class Verdicts:
    """What two sets of records say of the best kernels beside each framework's fastest mode, where both say something."""

    held: int     # the same word in both
    softened: int  # "same" or "ambiguous" in one of them
    flipped: list  # (name, first Ratio, second Ratio), faster in one and slower in the other

    def lines(self):
        count = self.held + self.softened + len(self.flipped)
        if not count:
            return []
        flips = [f"  {verdict.times(a)}, then {verdict.times(b)}  {name}" for name, a, b in self.flipped]
        return [f"of {count} verdicts on Plumbline beside a framework, {self.held} are the same in both, {self.softened} are the same or unclear in one, "
                f"and {len(self.flipped) or 'none'} went from faster to slower or back", *flips]


def ratios_of(records, aside):
    """{(experiment, machine, subject, framework): the Ratio of its fastest mode and our best}."""
    return {(experiment, machine_of(row.frameworks[framework]), row.subject["id"], framework): (f"{experiment}: {verdict.name_of(row.subject)}, {framework}", ratio)
            for experiment in dict.fromkeys(r["experiment"] for r in records) if experiment not in aside for row in verdict.rows(records, experiment)
            for (kernels, framework), ratio in row.ratios.items() if kernels == "best"}


def verdicts(before, after, aside=()):
    """Of all experiments but those that are `aside`: they hold no framework against Plumbline."""
    first, second = ratios_of(before, aside), ratios_of(after, aside)
    pairs = [(*first[key], second[key][1]) for key in first if key in second]
    flipped = [(name, a, b) for name, a, b in pairs if {a.verdict, b.verdict} == {"faster", "slower"}]
    held = sum(a.verdict == b.verdict for _, a, b in pairs)
    return Verdicts(held, len(pairs) - held - len(flipped), flipped)


def lines(rows):
    for row in sorted(rows, key=lambda row: -row.ratio.value):
        yield f"{row.word:9}  {verdict.times(row.ratio):>22}  {row.name}{why_of(row)}"
    yield RULE.format(100 * SAME, len(rows))


def why_of(row):
    """Behind the name of one that is mistrusted now; nothing else would say why the exit status is 1."""
    return row.mistrusted and f": mistrusted now, as {row.mistrusted}{'; its rounds are slower all the same' if row.fails else ''}"


def is_slower(rows):
    return any(row.fails for row in rows)
