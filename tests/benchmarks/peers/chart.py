"""Draws the figures as an SVG of labelled bars that reads on light and dark pages."""

from html import escape
from math import log10

WIDTH, LEFT, BAR, ROW, PANEL = 860, 170, 15, 23, 64
SHOWN = (("hybrid", "Both legs"), ("vector", "By meaning"), ("keyword", "By words"))
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
.head { font-weight: 600; font-size: 15px; }
.note { font-size: 12px; fill: #59636e; }
.ours { fill: #0969da; }
.disk { fill: #6e7781; }
.memory { fill: none; stroke: #6e7781; stroke-width: 1.2; }
.grid { stroke: #d1d9e0; }
.own { font-weight: 600; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.note { fill: #9198a1; }
.ours { fill: #4493f8; }
.disk { fill: #8b949e; }
.memory { stroke: #8b949e; }
.grid { stroke: #3d444d; }
}
"""


def draw(kept: dict[str, list[dict]]) -> str:
    """Return the chart of the figures, `"10000 x 384"` -> the engines' figures: what 10,000 snippets take, or most."""
    name = _shown(kept)
    size, dimensions = map(int, name.split(" x "))
    panels = {leg: _rows(kept[name], leg) for leg, _ in SHOWN}
    axis = _Axis([each["warm"] for rows in panels.values() for each in rows])
    parts, top = [], 56
    for leg, title in SHOWN:
        if panels[leg]:
            parts.append(_panel(title, panels[leg], axis, top))
            top += PANEL + ROW * len(panels[leg])
    title = f"A question to {size:,} snippets ({dimensions:,} dimensions), median in ms"
    legend = _legend(top)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 30}" width="{WIDTH}" '
        f'height="{top + 30}" role="img" aria-label="{escape(title)}">\n<style>{STYLE}</style>\n'
        f'<text class="head" x="12" y="26">{escape(title)}</text>\n'
        f'<text class="note" x="12" y="44">warm, one core, same vectors and texts; logarithmic; '
        f"shorter is faster</text>\n" + "\n".join([*parts, legend]) + "\n</svg>\n"
    )


class _Axis:
    """Where a time stands: a decade takes the same width everywhere."""

    def __init__(self, seconds: list[float]):
        low, high = (log10(1000 * each) for each in (min(seconds), max(seconds)))
        self._low, self.ticks = int(low // 1), range(int(low // 1), int(-(-high // 1)) + 1)
        self._decade = (WIDTH - LEFT - 130) / max(1, len(self.ticks) - 1)

    def at(self, milliseconds: float) -> float:
        return LEFT + (log10(milliseconds) - self._low) * self._decade


def _shown(kept: dict[str, list[dict]]) -> str:
    if "10000 x 384" in kept:
        return "10000 x 384"
    return max(kept, key=lambda name: int(name.split(" x ")[0]))


def _rows(figures: list[dict], leg: str) -> list[dict]:
    return sorted((each for each in figures if each["leg"] == leg and each["warm"]), key=lambda each: each["warm"])


def _panel(title: str, rows: list[dict], axis: _Axis, top: int) -> str:
    ours = next(each for each in rows if each["name"].startswith("sitewise"))
    bottom = top + 30 + ROW * len(rows)
    lines = [f'<text class="head" x="12" y="{top + 18}">{title}</text>']
    for tick in axis.ticks:
        x = axis.at(10**tick)
        lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top + 26}" y2="{bottom}"/>')
        lines.append(f'<text class="note" text-anchor="middle" x="{x:.1f}" y="{bottom + 14}">{10**tick:g} ms</text>')
    for number, each in enumerate(rows):
        lines += _bar(each, ours, axis, top + 30 + ROW * number)
    return "\n".join(lines)


def _bar(each: dict, ours: dict, axis: _Axis, top: int) -> list[str]:
    milliseconds = 1000 * each["warm"]
    width = max(2.0, axis.at(milliseconds) - LEFT)
    kind = "ours" if each is ours else "memory" if "memory" in each["keeps"] else "disk"
    own = ' class="own"' if each is ours else ""
    label = f"{milliseconds:.3g} ms" + ("" if each is ours else f"  ({each['warm'] / ours['warm']:.2g}x)")
    return [
        f'<text{own} text-anchor="end" x="{LEFT - 8}" y="{top + 12}">{escape(each["name"])}</text>',
        f'<rect class="{kind}" x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR}" rx="2"/>',
        f'<text{own} x="{LEFT + width + 7:.1f}" y="{top + 12}">{escape(label)}</text>',
    ]


def _legend(top: int) -> str:
    entries = (("ours", "Sitewise"), ("disk", "keeps its rows on disk"), ("memory", "holds them in memory"))
    lines = []
    for number, (kind, text) in enumerate(entries):
        x = 12 + 190 * number
        lines.append(f'<rect class="{kind}" x="{x}" y="{top}" width="{BAR}" height="{BAR}" rx="2"/>')
        lines.append(f'<text class="note" x="{x + 22}" y="{top + 12}">{text}</text>')
    return "\n".join(lines)
