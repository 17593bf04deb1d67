"""What may be in a text that is kept or printed: neither a database nor UTF-8 takes half a surrogate pair.

Such halves come escaped in JSON (`"\\ud800"`), and in arguments whose bytes are not UTF-8 (Python's surrogateescape).
"""

import json


def storable(text: str) -> str:
    """Return the text without what no database can hold: halves of surrogate pairs, and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


def printable(text: str) -> str:
    """Return the text with its halves of surrogate pairs escaped, as JSON escapes them: `\\ud800`."""
    return text.encode("utf-8", "backslashreplace").decode()


def json_line(document: object) -> str:
    """Return the document as one line of JSON that can be printed; what is read back is the same to the letter."""
    return printable(json.dumps(document, ensure_ascii=False))
