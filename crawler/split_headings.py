"""Splits Markdown along its headings into pieces of about one subject each, never inside a table, code or sentence
unless a single one is too large by itself."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from crawler.markdown import READER, plain_words
from models_app.tokens import count_tokens

# Shares of the threshold, so that Max context tokens sets the granularity. At the default of 1,600 tokens a piece aims
# at 480, which fits the local embedder's 512, and a section of under 160 joins its neighbour. Chosen on awsdocs by
# keyword (nDCG@10 .79 at a target of .15, .80 at .3) and on a site under hybrid (MRR .60 and .64; at .4 it falls).
TARGET_SHARE = 0.3
SMALL_SHARE = 0.1
PATH_SEPARATOR = " > "
TITLE_CHARACTERS = 300
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")


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

    @property
    def tokens(self) -> int:
        return count_tokens(self.text)


@dataclass(frozen=True)
class Section:
    """A heading with what stands below it, up to the next heading; `path` holds its own and its parents' texts."""

    path: tuple[str, ...]
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        return join_texts(block.text for block in self.blocks)

    @property
    def tokens(self) -> int:
        return count_tokens(self.text)


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
    """Return the top-level blocks of the Markdown, as they are written."""
    lines = markdown.split("\n")
    blocks, tokens = [], READER.parse(markdown)
    for token in tokens:
        if token.level or not token.map or token.nesting < 0:
            continue
        text = "\n".join(lines[token.map[0] : token.map[1]]).strip("\n")
        if token.type == "heading_open":
            blocks.append(Block(text, "heading", int(token.tag[1:])))
        elif text.strip():
            blocks.append(Block(text, _kind_of(token.type)))
    return blocks


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
    room = max(limit - count_tokens(f"{title}\n\n"), 1)
    target = min(target, room)
    pieces, held = [], []
    for block in (part for whole in blocks for part in _within(whole, room)):
        together = count_tokens(join_texts([*(one.text for one in held), block.text]))
        # A heading never ends a piece: it goes with what stands below it.
        if held and together > target and (held[-1].kind != "heading" or together > room):
            pieces.append(held)
            held = []
        held.append(block)
    return [Piece(title, join_texts(block.text for block in piece)) for piece in [*pieces, held] if piece]


def join_texts(texts) -> str:
    return "\n\n".join(texts)


def sentences_of(text: str) -> list[str]:
    """Return the text's sentences; joined by blanks they are the text again, white space aside."""
    return [sentence for sentence in SENTENCE_END.split(text) if sentence.strip()]


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


def _within(block: Block, room: int) -> Iterator[Block]:
    """Yield the block, in parts where it is larger than the room by itself."""
    if block.tokens <= room:
        yield block
        return
    lines = block.text.split("\n")
    if block.kind == "table":
        head, parts = "\n".join(lines[:2]) + "\n", lines[2:]
        texts = _packed(parts, "\n", room, head)
    elif block.kind == "code":
        fence = re.match(r"(`{3,}|~{3,})", lines[0])
        head, tail = (lines[0] + "\n", "\n" + fence[1]) if fence else ("", "")
        texts = _packed(lines[1:-1] if fence else lines, "\n", room, head, tail)
    elif block.kind == "list":
        texts = _packed(lines, "\n", room)
    else:
        texts = _packed(sentences_of(block.text), " ", room)
    for text in texts:
        yield Block(text, block.kind)


def _packed(parts: list[str], separator: str, room: int, head: str = "", tail: str = "") -> Iterator[str]:
    """Yield the parts joined into texts that fit the room, each with the same head and tail."""
    held: list[str] = []
    for part in (cut for whole in parts for cut in _cut_hard(whole, room - count_tokens(head + tail))):
        if held and count_tokens(head + separator.join([*held, part]) + tail) > room:
            yield head + separator.join(held) + tail
            held = []
        held.append(part)
    if held:
        yield head + separator.join(held) + tail


def _cut_hard(part: str, room: int) -> Iterator[str]:
    """Yield a sentence, row or line that is too large by itself in halves, cut at a blank where there is one."""
    if count_tokens(part) <= max(room, 1) or len(part) < 2:
        yield part
        return
    middle = len(part) // 2
    blank = part.rfind(" ", 1, middle + 1)
    cut = blank if blank > 0 else middle
    yield from _cut_hard(part[:cut], room)
    yield from _cut_hard(part[cut:].lstrip(" ") if blank > 0 else part[cut:], room)
