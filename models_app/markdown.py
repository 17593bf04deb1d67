"""Turns the Markdown of snippets and answers into HTML that is safe to show: no script, nothing loaded from elsewhere.

Snippets come from other people's pages and answers from an LLM: neither is trusted.
"""

from collections.abc import Sequence

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

BLOCKS = {"blockquote", "hr", "li", "ol", "p", "pre", "ul", "table", "tbody", "td", "th", "thead", "tr"}
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
INLINE = {"a", "br", "code", "em", "s", "span", "strong"}
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "span": {"class", "title"}}
SCHEMES = {"http", "https", "mailto", "tel"}
BREAKS = ("softbreak", "hardbreak")
DEEPEST_HEADING = 6


def render_markdown(text: str, heading_shift: int = 2) -> SafeString:
    """Return the Markdown as safe HTML; an image becomes its description, as showing it would tell its host who reads.

    `heading_shift` levels are added to each heading, so that a text's own outline stays below that of the page.
    """
    tokens = _parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + heading_shift, DEEPEST_HEADING)}"
    html = _parser.renderer.render(tokens, _parser.options, {})
    safe = nh3.clean(
        html,
        tags=BLOCKS | HEADINGS | INLINE,
        attributes=ATTRIBUTES,
        url_schemes=SCHEMES,
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(safe)  # noqa: S308 (cleaned on the line above)


def plain_text(text: str) -> str:
    """Return the words of the Markdown in one line, without its marks."""
    return " ".join(" ".join(plain_blocks(text)).split())


def plain_blocks(text: str) -> list[str]:
    """Return the words of each block of the Markdown, of a cell and of an item too, without its marks."""
    blocks = []
    for token in _parser.parse(text):
        if token.children:
            blocks.append("".join(" " if part.type in BREAKS else part.content for part in token.children))
        elif token.type in ("fence", "code_block"):
            blocks.append(token.content)
    return blocks


def _image_in_words(renderer, tokens: Sequence[Token], index: int, options, env) -> str:
    image = tokens[index]
    description = renderer.renderInlineAsText(image.children or [], options, env).strip() or "no description"
    return f'<span class="image-words" title="{escape(image.attrs.get("src", ""))}">Image: {escape(description)}</span>'


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image_in_words)
    return parser


_parser = _make_parser()
