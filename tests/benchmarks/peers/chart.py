"""Draws the figures as an SVG that reads on light and dark pages: a row an engine, a dot for each size."""

from html import escape
from math import ceil, floor, log10

NAMES, PLOT, PLOT_END, COLUMN, ROW = 158, 172, 560, 92, 23
DIMENSIONS = 384  # what the local embedder makes; other ones are in the table alone
PANELS = (("hybrid", "Both legs"), ("vector", "By meaning alone"), ("keyword", "By words alone"))
NOT_DRAWN = {"sitewise all postings"}
APPROXIMATE = {"usearch", "chromadb", "txtai"}  # by graphs or cells of neighbours; the others look at every vector
RADII = (3, 4.5, 6)
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 16px; }
.head, .own { font-weight: 600; }
.note { font-size: 12px; fill: #59636e; }
.number { text-anchor: end; font-variant-numeric: tabular-nums; }
line { stroke: #d1d9e0; }
.span { stroke: #6e7781; stroke-width: 1.5; }
.step { fill: #6e7781; stroke: #6e7781; }
.loose { fill: #ffffff; stroke: #6e7781; stroke-width: 1.5; }
.ours { fill: #0969da; stroke: #0969da; }
.paper { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.note { fill: #9198a1; }
line { stroke: #30363d; }
.span { stroke: #9198a1; }
.step { fill: #9198a1; stroke: #9198a1; }
.loose { fill: #0d1117; stroke: #9198a1; }
.ours { fill: #4493f8; stroke: #4493f8; }
.paper { fill: #0d1117; }
}
"""
TITLE = "How long a question takes"
NOTE = "median of warm questions in ms, one core; same texts and {dimensions} dimensions; logarithmic; ≈ approximate"


def draw(kept: dict[str, list[dict]]) -> str:
    """Return the chart of the figures, `"10000 x 384"` -> the engines' figures, of all sizes with one dimension."""
    dimensions, sizes = _shown(kept)
    times = {size: {each["name"]: each for each in kept[f"{size} x {dimensions}"] if each["warm"]} for size in sizes}
    axis = _Axis([each["warm"] for engines in times.values() for each in engines.values()])
    parts, top = _legend(sizes), 118
    for leg, heading in PANELS:
        rows = _rows(times, leg)
        parts += _panel(heading, rows, sizes, axis, top)
        top += 36 + ROW * len(rows)
    width, height = PLOT_END + COLUMN * len(sizes) + 24, top + 14
    parts += [f'<text class="note" text-anchor="middle" x="{axis.at(tick):.1f}" y="{top}">{tick:,g} ms</text>'
              for tick in axis.ticks]  # fmt: skip
    note = NOTE.format(dimensions=f"{dimensions:,}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="title description">\n<title id="title">{TITLE}</title>\n'
        f'<desc id="description">{escape(_described(times, sizes))}</desc>\n<style>{STYLE}</style>\n'
        f'<rect class="paper" width="{width}" height="{height}"/>\n'
        f'<text class="title" x="12" y="28">{TITLE}</text>\n<text class="note" x="12" y="48">{note}</text>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


class _Axis:
    """Where a time stands: a decade takes the same width everywhere."""

    def __init__(self, seconds: list[float]):
        low, high = floor(log10(1000 * min(seconds))), ceil(log10(1000 * max(seconds)))
        self.ticks = [10.0**power for power in range(low, max(high, low + 1) + 1)]
        self._low, self._decade = low, (PLOT_END - PLOT) / (len(self.ticks) - 1)

    def at(self, milliseconds: float) -> float:
        return PLOT + (log10(milliseconds) - self._low) * self._decade


def _shown(kept: dict[str, list[dict]]) -> tuple[int, list[int]]:
    """Return the dimensions that are drawn, and the sizes measured with them, three at most."""
    measured = [tuple(map(int, name.split(" x "))) for name in kept]
    dimensions = min((each for _, each in measured), key=lambda each: abs(each - DIMENSIONS))
    return dimensions, sorted(size for size, each in measured if each == dimensions)[-len(RADII) :]


def _rows(times: dict[int, dict[str, dict]], leg: str) -> list[dict]:
    """Return an engine's figures of the leg each, the fastest at the middle size first."""
    every = {each["name"]: each for engines in times.values() for each in engines.values() if each["leg"] == leg}
    middle = list(times.values())[len(times) // 2]
    rows = [
        {**each, "times": {size: engines.get(name) for size, engines in times.items()}}
        for name, each in every.items()
        if name not in NOT_DRAWN
    ]
    return sorted(rows, key=lambda each: middle.get(each["name"], each)["warm"])


def _panel(heading: str, rows: list[dict], sizes: list[int], axis: _Axis, top: int) -> list[str]:
    bottom = top + 12 + ROW * len(rows)
    lines = [f'<text class="head" x="12" y="{top}">{heading}</text>']
    lines += [f'<line x1="{axis.at(tick):.1f}" x2="{axis.at(tick):.1f}" y1="{top + 8}" y2="{bottom}"/>'
              for tick in axis.ticks]  # fmt: skip
    for number, row in enumerate(rows):
        lines += _row(row, sizes, axis, top + 20 + ROW * number)
    return lines


def _row(row: dict, sizes: list[int], axis: _Axis, middle: int) -> list[str]:
    is_ours = row["name"].startswith("sitewise")
    own = " own" if is_ours else ""
    kind = "ours" if is_ours else "step" if _is_in_step(row) else "loose"
    lines, dots = [], []
    for place, size in enumerate(sizes):
        figures = row["times"][size]
        text = _shown_time(1000 * figures["warm"]) if figures else "–"
        lines.append(f'<text class="number{own}" x="{PLOT_END + COLUMN * (place + 1)}" y="{middle + 4}">{text}</text>')
        if figures:
            dots.append((axis.at(1000 * figures["warm"]), RADII[place]))
    mark = " ≈" if row["name"] in APPROXIMATE else ""
    name = f'<text class="number{own}" x="{NAMES}" y="{middle + 4}">{escape(row["name"])}{mark}</text>'
    ends = [at for at, _ in dots]
    span = f'<line class="span" x1="{min(ends):.1f}" x2="{max(ends):.1f}" y1="{middle}" y2="{middle}"/>'
    circles = [f'<circle class="{kind}" cx="{at:.1f}" cy="{middle}" r="{radius}"/>' for at, radius in dots]
    return [name, span, *circles, *lines]


def _legend(sizes: list[int]) -> list[str]:
    """Return what the dots mean, and the heads of the columns."""
    lines = []
    kinds = (("ours", "Sitewise"), ("step", "in step with its rows, on disk"), ("loose", "in memory, or out of step"))
    for (kind, text), x in zip(kinds, (18, 106, 318), strict=True):
        lines.append(f'<circle class="{kind}" cx="{x}" cy="70" r="4.5"/>')
        lines.append(f'<text class="note" x="{x + 11}" y="74">{text}</text>')
    for place, size in enumerate(sizes):
        x = PLOT_END + COLUMN * (place + 1)
        lines.append(f'<circle class="step" cx="{x - 6}" cy="84" r="{RADII[place]}"/>')
        lines.append(f'<text class="number note" x="{x}" y="106">{size:,}</text>')
    lines.append(f'<text class="number note" x="{PLOT_END + COLUMN * len(sizes)}" y="68">ms at so many snippets</text>')
    return lines


def _is_in_step(row: dict) -> bool:
    return row["keeps"].startswith("on disk") and "out of step" not in row["keeps"]


def _shown_time(milliseconds: float) -> str:
    return f"{milliseconds:,.{max(0, 2 - floor(log10(max(1.0, milliseconds))))}f}"


def _described(times: dict[int, dict[str, dict]], sizes: list[int]) -> str:
    """Return what the chart shows of engines with both legs, in words."""
    told = []
    for size in sizes:
        rows = sorted((each for each in times[size].values() if each["leg"] == "hybrid"), key=lambda each: each["warm"])
        took = ", ".join(f"{each['name']} {_shown_time(1000 * each['warm'])} ms" for each in rows)
        told.append(f"{size:,} snippets: {took}.")
    return "Both legs. " + " ".join(told)
