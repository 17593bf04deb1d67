"""Prints the figures of one collection as ratios to ours of the same leg."""

from tests.benchmarks.peers.measuring import Figures

LEGS = ("hybrid", "vector", "keyword")
COLUMNS = ("build", "cold", "warm", "slow", "insert", "update", "disk", "memory")
HEADS = ("build s", "cold ms", "p50 ms", "p95 ms", "insert ms", "update ms", "disk MB", "memory MB")
SCALES = (1, 1e3, 1e3, 1e3, 1e3, 1e3, 1e-6, 1e-6)


def table(size: int, dimensions: int, figures: list[Figures]) -> str:
    """Return a table: ours in units, each peer as so many times ours."""
    lines = [f"\n== {size:,} snippets x {dimensions:,}: ours in units, a peer as times ours =="]
    for leg in LEGS:
        rows = [each for each in figures if each.leg == leg and not each.error]
        ours = next((each for each in rows if each.name.startswith("sitewise")), None)
        if ours is None:
            continue
        lines += ["", f"{leg:18}" + "".join(f"{head:>11}" for head in HEADS) + "  same 10  keeps its rows"]
        lines += [_line(each, ours) for each in rows]
    return "\n".join([*lines, "", *legs_of(figures)])


def legs_of(figures: list[Figures]) -> list[str]:
    """Return what our hybrid takes against its legs and the fastest peer that does both."""
    took = {each.name: each.warm for each in figures if each.warm}
    ours = [took.get(f"sitewise {leg}") for leg in ("hybrid", "semantic", "keyword")]
    lines = []
    if all(ours):
        lines.append(f"our hybrid takes {ours[0] / (ours[1] + ours[2]):.2f} times its two legs")
    if ours[1] and "numpy" in took:
        lines.append(f"our semantic leg takes {ours[1] / took['numpy']:.2f} times a matrix in memory")
    peers = [each for each in figures if each.leg == "hybrid" and each.warm and not each.name.startswith("sitewise")]
    if ours[0] and peers:
        fastest = min(peers, key=lambda each: each.warm)
        lines.append(f"our hybrid takes {ours[0] / fastest.warm:.2f} times the fastest peer's ({fastest.name})")
    return lines


def _line(each: Figures, ours: Figures) -> str:
    cells = []
    for column, scale in zip(COLUMNS, SCALES, strict=True):
        value, own = getattr(each, column), getattr(ours, column)
        if value is None or (each is not ours and not own):
            cells.append("-")
        elif each is ours:
            cells.append(f"{value * scale:,.2f}")
        else:
            cells.append(f"{value / own:.2f}x")
    agrees = "-" if each.agrees is None else f"{each.agrees:.2f}"
    return f"{each.name:18}" + "".join(f"{cell:>11}" for cell in cells) + f"{agrees:>9}  {each.keeps}"
