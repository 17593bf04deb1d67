"""Prints the figures of one collection, and how ours stand to the others'."""

from tests.benchmarks.peers.measuring import TOP, Figures

LEGS = ("hybrid", "vector", "keyword")
# Heading, figure, scale.
COLUMNS = (
    ("build s", "build", 1),
    ("cold ms", "cold", 1e3),
    ("p50 ms", "warm", 1e3),
    ("p95 ms", "slow", 1e3),
    ("cpu ms", "busy", 1e3),
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
    peers = [each for each in by_name.values() if each.leg == "hybrid" and each is not hybrid]
    fastest = min(peers, key=lambda each: each.warm, default=None)
    in_step = min((each for each in peers if each.is_in_step), key=lambda each: each.warm, default=None)
    lines = [
        _ratio("our hybrid", [hybrid], "its two legs", [semantic, keyword]),
        _ratio("our hybrid", [hybrid], f"{fastest and fastest.name}, the fastest peer with both legs", [fastest]),
        _ratio("our hybrid", [hybrid], f"{in_step and in_step.name}, the fastest in step with its rows", [in_step]),
        _ratio("our semantic leg", [semantic], "a matrix in memory", [by_name.get("numpy")]),
        _ratio("our keyword leg", [keyword], "tantivy", [by_name.get("tantivy")]),
        _ratio("without its budget of postings it", [by_name.get("sitewise all postings")], "with it", [keyword]),
    ]
    return [line for line in [*lines, _budget(keyword, by_name.get("sitewise all postings"))] if line]


def _ratio(what: str, ours: list[Figures | None], others_name: str, others: list[Figures | None]) -> str:
    """Return a sentence on the times of some engines together against those of others; empty if one is missing."""
    if not all([*ours, *others]):
        return ""
    warm, busy = (
        sum(getattr(each, figure) for each in ours) / sum(getattr(each, figure) for each in others)
        for figure in ("warm", "busy")
    )
    return f"{what} takes {warm:.2f} times as long as {others_name} ({busy:.2f} by processor time)"


def _budget(keyword: Figures | None, every: Figures | None) -> str:
    if not keyword or not every:
        return ""
    same = [len({*found} & {*every.found.get(question, ())}) for question, found in keyword.found.items()]
    return f"of the first {TOP} under the budget, {sum(same) / max(1, len(same)):.1f} are those without it"


def _line(each: Figures, ours: Figures | None) -> str:
    values = [(getattr(each, figure), scale) for _, figure, scale in COLUMNS]
    cells = "".join("-".rjust(11) if value is None else f"{value * scale:>11,.2f}" for value, scale in values)
    ratio = f"{each.warm / ours.warm:.2f}x" if ours else "-"
    return f"{each.name:22}{cells}{ratio:>11}  {each.keeps}"
