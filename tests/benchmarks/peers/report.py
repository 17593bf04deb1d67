"""Prints the figures of one collection, and how ours stand to the others'."""

from tests.benchmarks.peers.measuring import TOP, Figures

LEGS = ("hybrid", "vector", "keyword")
# Heading, figure, scale.
COLUMNS = (
    ("build s", "build", 1),
    ("cold ms", "cold", 1e3),
    ("p50 ms", "warm", 1e3),
    ("p95 ms", "slow", 1e3),
    ("insert ms", "insert", 1e3),
    ("update ms", "update", 1e3),
    ("disk MB", "disk", 1e-6),
    ("memory MB", "memory", 1e-6),
    ("right 10", "agrees", TOP),
    ("fresh", "fresh", 1),
)


def table(size: int, dimensions: int, figures: list[Figures]) -> str:
    """Return a table in units, the ratio of each median question to ours behind it, and what failed below."""
    lines = [f"\n== {size:,} snippets x {dimensions:,} =="]
    for leg in LEGS:
        rows = [each for each in figures if each.leg == leg and each.warm]
        ours = next((each for each in rows if each.name.startswith("sitewise")), None)
        if rows:
            lines += ["", f"{leg:22}" + "".join(f"{head:>11}" for head, _, _ in COLUMNS) + "   p50/ours  its rows"]
            lines += [_line(each, ours) for each in sorted(rows, key=lambda each: each.warm)]
    failed = [f"{each.name}: {each.error}" for each in figures if each.error]
    return "\n".join([*lines, "", *failed, *ratios(figures)])


def ratios(figures: list[Figures]) -> list[str]:
    """Return what ours take against what they are made of, and against the fastest others."""
    by_name = {each.name: each for each in figures if each.warm}
    hybrid, semantic, keyword = (by_name.get(f"sitewise {leg}") for leg in ("hybrid", "semantic", "keyword"))
    lines = []
    if hybrid and semantic and keyword:
        lines.append(f"our hybrid takes {hybrid.warm / (semantic.warm + keyword.warm):.2f} times its two legs")
    peers = [each for each in by_name.values() if each.leg == "hybrid" and each is not hybrid]
    fastest = {
        "the fastest peer with both legs": peers,
        "the fastest that keeps both in step with the rows on disk": [each for each in peers if each.is_in_step],
    }
    for what, group in fastest.items():
        if hybrid and group:
            least = min(group, key=lambda each: each.warm)
            lines.append(f"our hybrid takes {hybrid.warm / least.warm:.2f} times {least.name}'s, {what}")
    if semantic and "numpy" in by_name:
        lines.append(f"our semantic leg takes {semantic.warm / by_name['numpy'].warm:.2f} times a matrix in memory")
    if keyword and "tantivy" in by_name:
        lines.append(f"our keyword leg takes {keyword.warm / by_name['tantivy'].warm:.1f} times tantivy's")
    every = by_name.get("sitewise all postings")
    if keyword and every:
        same = [len({*found} & {*every.found.get(question, ())}) for question, found in keyword.found.items()]
        lines.append(
            f"without its budget of postings it takes {every.warm / keyword.warm:.1f} times as long; "
            f"{sum(same) / max(1, len(same)):.1f} of the first {TOP} are the same"
        )
    return lines


def _line(each: Figures, ours: Figures | None) -> str:
    values = [(getattr(each, figure), scale) for _, figure, scale in COLUMNS]
    cells = "".join("-".rjust(11) if value is None else f"{value * scale:>11,.2f}" for value, scale in values)
    ratio = f"{each.warm / ours.warm:.2f}x" if ours else "-"
    return f"{each.name:22}{cells}{ratio:>11}  {each.keeps}"
