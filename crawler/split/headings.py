"""Splits Markdown along its headings into pieces of about one subject each, never inside a table, code or sentence
unless a single one is too large by itself."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, takewhile

from markdown_it import MarkdownIt

from crawler.markup.markdown import plain_words
from models_app.tokens import count_tokens, fits_tokens, truncate_to_tokens

# Shares of the threshold, so that Max context tokens sets the granularity. At the default of 1,600 tokens a piece aims
# at 528, and a section of under 176 joins its neighbour; a list or paragraph is cut at 1,056. Chosen on awsdocs by
# keyword (tests/benchmarks/bench_split.py: nDCG@10 .807; some .01 less at .3 and .35) and on a site
# under hybrid (its MRR falls at .4).
TARGET_SHARE = 0.33
SMALL_SHARE = 0.11
PATH_SEPARATOR = " > "
TITLE_CHARACTERS = 300
# What a blank line between two blocks may add to their tokens, and so many more may a joint be off.
JOINT_TOKENS = 2
TITLE_PART = 4  # a title may take a fourth of a piece: the text is what answers
CUT_MARKS = ("\n", ". ", " ")
ENTRY_START = re.compile(r"\n+(?=[-*+] |\d{1,9}[.)] )")
# A sentence ends behind its stop and a quote or bracket that closes there; not within code, links and emphasis.
SENTENCE_END = re.compile(
    r"""(?P<whole>\\. | (`+)(?!`).*?(?<!`)\2(?!`) | !?\[(?:\\.|[^\[\]\\])*\]\([^\s()]*(?:\s"[^"]*")?\)
      | \*\*\S.*?\*\* | ~~\S.*?~~ | \*[^\s*][^*]*\*)
    | (?: (?<=[.!?…]) | (?<=[.!?…][*)"'”’\]]) ) \s+ | (?<=[。！？])""",
    re.VERBOSE,
)

# As READER reads; but what stands within a line is not looked at, which is most of the work.
_BLOCK_READER = MarkdownIt("commonmark", {"html": False}).enable("table").disable("inline")


@dataclass(frozen=True)
class Piece:
    """A title and the Markdown under it."""

    title: str
    text: str


@dataclass(frozen=True)
class Block:
    """A top-level block of Markdown; `heading_level` is 0 for what is no heading."""

    text: str
    kind: str  # heading, table, code, list or text
    heading_level: int = 0

    @cached_property
    def tokens(self) -> int:
        """How many tokens it has, counted once: counting is what takes the time in splitting."""
        return count_tokens(self.text)

    @property
    def announces(self) -> bool:
        """Whether this says what the next block is: a heading, a term in bold, a line that ends in a colon."""
        is_term = self.kind == "text" and self.text.startswith("**") and self.text.endswith("**")
        return self.kind == "heading" or is_term or (self.kind == "text" and self.text.endswith((":", "：")))


@dataclass(frozen=True)
class Section:
    """A heading with what stands below it, up to the next heading; `path` holds its own and its parents' texts."""

    path: tuple[str, ...]
    blocks: tuple[Block, ...]

    @property
    def tokens(self) -> int:
        """How many tokens it has, or a few more: blocks are counted one by one."""
        return _at_most(self.blocks)


def split_by_headings(markdown: str, title: str, threshold_tokens: int) -> list[Piece]:
    """Return the Markdown as pieces of at most `threshold_tokens`, title included, in order and complete."""
    target, small = int(threshold_tokens * TARGET_SHARE), int(threshold_tokens * SMALL_SHARE)
    pieces = []
    for group in _grouped(list(_sections(blocks_of(markdown))), target, small):
        heading = title_of(title, [section.path for section in group])
        blocks = [block for section in group for block in section.blocks]
        pieces += cut_to_fit(heading, blocks, target, threshold_tokens)
    return pieces


def blocks_of(markdown: str) -> list[Block]:
    """Return the top-level blocks of the Markdown as they are written; together they hold all of its text."""
    lines = markdown.split("\n")
    blocks: list[Block] = []
    end = 0
    for token in _BLOCK_READER.parse(markdown):
        if token.level or not token.map or token.nesting < 0:
            continue
        start, stop = token.map
        # What a reader of Markdown does not show (where a link leads, say) belongs to the text all the same.
        blocks += _block(lines[end:start], "text")
        level = int(token.tag[1:]) if token.type == "heading_open" else 0
        blocks += _block(lines[start:stop], "heading" if level else _kind_of(token.type), level)
        end = stop
    return blocks + _block(lines[end:], "text")


def _block(lines: list[str], kind: str, level: int = 0) -> list[Block]:
    text = "\n".join(lines).strip("\n")
    return [Block(text, kind, level)] if text.strip() else []


def title_of(page_title: str, paths: list[tuple[str, ...]]) -> str:
    """Return "page > section > sub-section"; of several sections what they share, and then each one's own heading."""
    shared = 0
    while all(len(path) > shared for path in paths) and len({path[shared] for path in paths}) == 1:
        shared += 1
    own = dict.fromkeys(path[shared] for path in paths if len(path) > shared)
    parts = [*paths[0][:shared], *([" · ".join(own)] if own else [])]
    known = page_title.casefold()
    parts = [part for part in parts if part and part.casefold() not in known]
    return PATH_SEPARATOR.join([part for part in [page_title, *parts] if part])[:TITLE_CHARACTERS]


def cut_to_fit(title: str, blocks: list[Block], target: int, limit: int) -> list[Piece]:
    """Return the blocks as pieces near the target, each at most `limit` tokens with its title."""
    title = truncate_to_tokens(title, max(limit // TITLE_PART, 1))
    room = max(limit - count_tokens(f"{title}\n\n"), 1)
    target = min(target, room)
    pieces, held, size = [], [], 0
    for block in (part for whole in blocks for part in _within(whole, target, room)):
        more = _at_most([block])
        if held and size + more > target:
            # What announces the next block goes with it, not with what stands before.
            announced = list(takewhile(lambda one: one.announces, reversed(held)))[::-1]
            before = held[: len(held) - len(announced)]
            pieces += [before] if before else []
            held, size = announced, _at_most(announced)
        if held and size + more > room and not _fits([*held, block], room):
            pieces.append(held)
            held, size = [], 0
        held.append(block)
        size += more
    return [Piece(title, join_texts(block.text for block in piece)) for piece in [*pieces, held] if piece]


def _at_most(blocks: Sequence[Block]) -> int:
    """Return how many tokens the blocks have together, or a few more."""
    return sum(block.tokens + JOINT_TOKENS for block in blocks)


def _fits(blocks: list[Block], room: int) -> bool:
    return fits_tokens(join_texts(block.text for block in blocks), room)


def join_texts(texts) -> str:
    return "\n\n".join(texts)


def sentences_of(text: str) -> list[str]:
    """Return the text's sentences, each with the blanks behind it: side by side they are the text again."""
    ends = [match.end() for match in SENTENCE_END.finditer(text) if not match["whole"]]
    cuts = [0, *dict.fromkeys(end for end in ends if 0 < end < len(text)), len(text)]
    return [text[start:stop] for start, stop in pairwise(cuts)]


def _kind_of(token_type: str) -> str:
    kinds = {"table_open": "table", "fence": "code", "code_block": "code"}
    return kinds.get(token_type, "list" if token_type.endswith("_list_open") else "text")


def _sections(blocks: list[Block]) -> Iterator[Section]:
    path: list[tuple[int, str]] = []
    held: list[Block] = []
    for block in blocks:
        if block.heading_level:
            if held:
                yield Section(tuple(text for _, text in path), tuple(held))
            held = []
            path = [step for step in path if step[0] < block.heading_level]
            # Documentation tools end their headings with a sign that links to them: no part of what it says.
            path.append((block.heading_level, plain_words(block.text).rstrip("¶# ")))
        held.append(block)
    if held:
        yield Section(tuple(text for _, text in path), tuple(held))


def _grouped(sections: list[Section], target: int, small: int) -> Iterator[list[Section]]:
    """Yield sections that belong together: a small one joins the one before while both fit the target."""
    group: list[Section] = []
    size = 0
    for section in sections:
        tokens = section.tokens
        is_bare = all(block.heading_level for block in group[-1].blocks) if group else False
        joins = is_bare or ((size < small or tokens < small) and size + tokens <= target)
        if group and not joins:
            yield group
            group, size = [], 0
        group.append(section)
        size += tokens
    if group:
        yield group


def _within(block: Block, target: int, room: int) -> Iterator[Block]:
    """Yield the block, in parts where it is too large: a list or paragraph for twice the target, else for the room."""
    limit = min(room, target * 2) if block.kind in ("list", "text") else room
    if block.tokens <= limit:
        yield block
        return
    lines = block.text.split("\n")
    if block.kind == "table":
        texts = _packed(lines[2:], "\n", room, head="\n".join(lines[:2]) + "\n")
    elif block.kind == "code":
        texts = _packed_code(lines, room)
    elif block.kind == "list":
        texts = _packed(ENTRY_START.split(block.text), "\n", limit)
    else:
        texts = _packed(sentences_of(block.text), "", limit)
    for text in texts:
        yield Block(text.strip("\n"), block.kind)


def _packed_code(lines: list[str], room: int) -> Iterator[str]:
    fence = re.match(r"\s*(`{3,}|~{3,})", lines[0])
    if not fence:
        yield from _packed(lines, "\n", room)
        return
    is_closed = len(lines) > 1 and lines[-1].strip().startswith(fence[1])
    yield from _packed(lines[1:-1] if is_closed else lines[1:], "\n", room, lines[0] + "\n", "\n" + fence[1])


def _packed(parts: list[str], separator: str, room: int, head: str = "", tail: str = "") -> Iterator[str]:
    """Yield the parts joined into texts that fit the room, each with the same head and tail."""
    frame = count_tokens(head + tail)
    held: list[str] = []
    size = frame
    for part in (cut for whole in parts for cut in _cut_hard(whole, room - frame)):
        tokens = count_tokens(part + separator)
        # The sum is exact or a little too much: only where it says no, the whole is counted.
        if held and size + tokens > room and count_tokens(head + separator.join([*held, part]) + tail) > room:
            yield head + separator.join(held) + tail
            held, size = [], frame
        held.append(part)
        size += tokens
    if held:
        yield head + separator.join(held) + tail


def _cut_hard(part: str, room: int) -> Iterator[str]:
    """Yield a sentence, row, line or list's entry that is too large by itself in halves, cut where it reads best."""
    if fits_tokens(part, max(room, 1)) or len(part) < 2:
        yield part
        return
    middle = len(part) // 2
    for mark in CUT_MARKS:
        cut = part.rfind(mark, 1, middle + 1)
        # An end of a line or sentence counts where the first half is no mere stub; a blank does anywhere.
        if cut > (0 if mark == " " else middle // 4):
            yield from _cut_hard(part[: cut + len(mark)].rstrip(" \n"), room)
            yield from _cut_hard(part[cut + len(mark) :], room)
            return
    yield from _cut_hard(part[:middle], room)
    yield from _cut_hard(part[middle:], room)
