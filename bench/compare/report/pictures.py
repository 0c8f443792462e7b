"""Pictures as SVG that stands in the page: no network, no script, and the page's own colours of text."""

import io
import textwrap

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

INK = "#0a0b0c"  # replaced by the page's colour of text, which differs by day and night
COLOURS = {"vendor": "#3b82c4", "best": "#2a9d6f", "torch": "#e0662f", "tensorflow": "#d19a1d", "jax": "#9b6bd1"}
WIDTH = 4.0          # inches; on a phone of 390 pixels, text of 9 points has 11 then, as long as nothing stands out of the axes' width
LONGEST = 44         # letters of 9 points that this has room for

STYLE = {"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9, "axes.titlesize": 9, "legend.fontsize": 9, "axes.labelsize": 9, "xtick.labelsize": 9, "ytick.labelsize": 9, "text.color": INK, "axes.labelcolor": INK,
         "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
         "figure.facecolor": "none", "axes.facecolor": "none", "svg.hashsalt": "plumbline"}


PART_COLOURS = {"vendor kernels": "#3b82c4", "own kernels": "#2a9d6f", "conversions": "#d19a1d", "memory": "#e0662f", "host": "#9b6bd1",
                "waiting": "#c4577f", "idle": "#9aa5b1", "elsewhere": "#5b6672", "unexplained": "#000000"}

REST = "not by class"
CLASS_COLOURS = {"parameter": "#3b82c4", "gradient": "#2a9d6f", "state": "#9b6bd1", "activation": "#e0662f", "workspace": "#d19a1d", "pack": "#c4577f",
                 "input": "#5b6672", REST: "#9aa5b1"}


def colour(name):
    return COLOURS.get(name.lower().replace("pytorch", "torch"), "#7c8a99")


def svg_of(figure):
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", pad_inches=0.03, transparent=True, metadata={"Date": None})
    plt.close(figure)
    picture = text.getvalue()
    return picture[picture.index("<svg"):].replace(INK, "currentColor")


def on_paper(svg):
    """A picture that stands in no page of ours, which would give it its colours."""
    head, rest = svg.split(">", 1)
    return f'{head} color="{INK}">\n <rect width="100%" height="100%" fill="#ffffff"/>{rest}'


def plain(axis):
    """Numbers as they are spoken: powers of ten have exponents too small to read."""
    axis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda v, _: f"{v:g}"))


def dots(rows, title, label, ticks_of, spoken="{:g}".format, limits=None):
    """Dots with intervals on an axis of powers: [(name, {side: Ratio})], with a line at 1. A row's name stands above it, so that a narrow
    screen has the whole width for the dots. `ticks_of` has the ticks of an axis from low to high."""
    rows = [("\n".join(textwrap.fill(line, LONGEST) for line in name.splitlines()), ratios_) for name, ratios_ in rows]
    height = 1.1 + (0.42 + 0.31 * max((name.count("\n") for name, _ in rows), default=0)) * len(rows)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, height))
        names = list(dict.fromkeys(n for _, ratios_ in rows for n in ratios_))
        for i, n in enumerate(names):
            found = [(y, r[n]) for y, (_, r) in enumerate(rows) if n in r]
            offset = (i - (len(names) - 1) / 2) * min(0.16, 0.48 / len(names))  # those of many sides stay clear of the names
            x = [r.value for _, r in found]
            error = [[max(0, r.value - max(r.low, 1e-3)) for _, r in found], [max(0, min(r.high, 1e3) - r.value) for _, r in found]]
            axes.errorbar(x, [y + offset for y, _ in found], xerr=error, fmt="o", ms=3.5, lw=1, color=colour(n), label=n)
        for y, (name, _) in enumerate(rows):
            axes.text(0, y - 0.26, name, transform=axes.get_yaxis_transform(), va="bottom")
        axes.axvline(1, color=INK, lw=0.8)
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        low, high = axes.set_xlim(limits) if limits else axes.get_xlim()
        ticks = [t for t in ticks_of(low, high) if low <= t <= high]
        axes.set_xticks(ticks, [spoken(t) for t in ticks])
        axes.set_yticks([])
        axes.set_ylim(len(rows) - 0.6, -0.95)
        axes.set_xlabel(label)
        axes.set_title(title, loc="left")
        axes.grid(axis="x", lw=0.3, color=INK, alpha=0.3)
        if names:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.7 / height), ncols=min(3, len(names)), frameon=False)
        return svg_of(figure)


def ratios(rows, title, reference):
    """How many times as long each framework takes, by row."""
    def ticks(low, high):
        return (0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.3, 1.5) if high < 2 * low else (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
    return dots(rows, title, f"times as long as Plumbline's {reference}:\nright of 1, Plumbline is faster", ticks)


def roofs(rows, limits):
    """How much of the machine's roof each side reaches, by row, on an axis with these limits."""
    def ticks(low, high):
        return (0.001, 0.01, 0.1, 1, 10) if high > 100 * low else (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
    return dots(rows, "", "share of the machine's roof, the line at 100 %;\nWinograd, or data in a cache, may pass it", ticks, lambda v: f"{100 * v:g} %", limits)


def lines(points_of, x_label, y_label, title, log=True):
    """Lines through points: {name: [(x, y)]}. What was printed elsewhere, "NAME, YEAR", is dashed."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, 3.0))
        used = {}
        for name, points in points_of.items():
            points = sorted(points)
            printed, key = name.rsplit(", ", 1)[-1].isdigit(), name.split(",")[0].split()[0]
            marker = "os^Dv"[used.get((key, printed), 0) % 5]
            used[key, printed] = used.get((key, printed), 0) + 1
            axes.plot([x for x, _ in points], [y for _, y in points], ("--" if printed else "-") + marker, ms=3.5, lw=1.2, color=colour(key), label=name)
        if log:
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            places = sorted({x for points in points_of.values() for x, _ in points})
            axes.set_xticks(places, [str(x) for x in places])
            plain(axes.yaxis)
            axes.minorticks_off()
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_title(title, loc="left")
        axes.grid(lw=0.3, color=INK, alpha=0.3)
        if points_of:
            axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
        return svg_of(figure)


def throughput(points_of, title):
    """Images a second against the batch: {name: [(batch, rate)]}."""
    return lines(points_of, "batch", "images a second", title)


LAYOUT_COLOURS = {"nchw": "#3b82c4", "nhwc": "#2a9d6f", "chwn": "#e0662f", "blocked": "#9b6bd1"}


def by_batch(work):
    """Microseconds an image against the batch, a panel each: {title: {layout: [(batch, seconds an image)]}}."""
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(len(work), 1, figsize=(WIDTH, 2.1 * len(work)), squeeze=False, sharex=True, layout="constrained")
        for axes, (title, lines) in zip(panels[:, 0], work.items()):
            for name, points in lines.items():
                points = sorted(points)
                axes.plot([b for b, _ in points], [1e6 * s for _, s in points], "o-", ms=3.5, lw=1.2, color=LAYOUT_COLOURS[name], label=name)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            batches = sorted({b for points in lines.values() for b, _ in points})
            axes.set_xticks(batches, [str(b) for b in batches])
            plain(axes.yaxis)
            axes.minorticks_off()
            axes.set_ylabel("µs an image")
            axes.set_title(title, loc="left")
            axes.grid(lw=0.3, color=INK, alpha=0.3)
        panels[-1, 0].set_xlabel("batch")
        panels[0, 0].legend(frameon=False)
        return svg_of(figure)


def bars(axes, rows, colours, unit):
    """Parts beside each other, one row a bar under its name: [(name, {part: number})]. Returns the parts that can be seen."""
    for y, (name, parts) in enumerate(rows):
        left = 0.0
        for part, number in parts.items():
            axes.barh(y, unit * number, left=left, height=0.45, color=colours[part])
            left += unit * number
        axes.text(0, y - 0.28, name, va="bottom")
    axes.set_yticks([])
    axes.set_ylim(len(rows) - 0.2, -0.8)
    return [p for p in colours if any(parts.get(p, 0) > 0.002 * sum(parts.values()) for _, parts in rows)]


def legend_of(axes, used, colours, height):
    handles = [plt.Rectangle((0, 0), 1, 1, color=colours[p]) for p in used]
    axes.legend(handles, used, loc="upper center", bbox_to_anchor=(0.5, -0.55 / height), ncols=3, frameon=False)


def stacked(rows, floor_s, title):
    """A step's parts: [(name, {part: seconds})], with a line at what nothing that calls these kernels can go below."""
    height = 1.1 + 0.42 * len(rows)
    unit, word = (1e3, "ms") if max(sum(parts.values()) for _, parts in rows) < 10 else (1, "s")
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, height))
        used = bars(axes, rows, PART_COLOURS, unit)
        if floor_s:
            axes.axvline(unit * floor_s, color=INK, lw=0.9, ls="--")
            axes.text(unit * floor_s, len(rows) - 0.45, " vendor's kernels alone", va="top")
        axes.set_xlabel(f"{word} a step")
        axes.set_title(title, loc="left")
        legend_of(axes, used, PART_COLOURS, height)
        return svg_of(figure)


def memory(rows, title):
    """Peak memory by class: [(name, {class: bytes})]."""
    height = 1.1 + 0.42 * len(rows)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, height))
        used = bars(axes, rows, CLASS_COLOURS, 1e-6)
        axes.set_xlabel("MB at the peak")
        axes.set_title(title, loc="left")
        legend_of(axes, used, CLASS_COLOURS, height)
        return svg_of(figure)
