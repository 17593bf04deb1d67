"""The port to YAML: reads a document into texts, lists and dictionaries, and into nothing else.

It is put together from the parser's events, not by a loader: no tag makes an object, no alias is followed (which a few
lines can multiply into gigabytes), and a scalar stays as it was written: `yes` is no truth value, `1.10` no number.
"""

import yaml

MOST_DEEP = 50
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# The parser in C, where PyYAML was built with it, is thirty times as fast.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlUnreadable(Exception):
    """The text is no YAML, or none that is read here."""


def read_yaml(text: str) -> list:
    """Return the documents of the text; raises YamlUnreadable. A key that is not a text is an error too."""
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=LOADER):
            builder.take(event)
    except yaml.YAMLError as error:
        raise YamlUnreadable(f"This is no YAML that can be read: {_where(error)}") from error
    return builder.documents


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
    return f"{problem}, line {mark.line + 1:,}." if mark else f"{problem}."


class _Builder:
    """Puts values together from events, on a stack of its own."""

    def __init__(self):
        self.documents: list = []
        self._open: list[list | dict] = []
        self._keys: list[str | None] = []  # of each open mapping: the key whose value comes next

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise YamlUnreadable(f"Line {event.start_mark.line + 1:,} repeats another by an alias (*): write it out.")
        if isinstance(event, yaml.ScalarEvent):
            is_null = event.implicit[0] and event.value in NULLS
            self._put(None if is_null else event.value)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            if len(self._open) >= MOST_DEEP:
                raise YamlUnreadable("The file is nested too deeply.")
            self._open.append({} if isinstance(event, yaml.MappingStartEvent) else [])
            self._keys.append(None)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._keys.pop()
            self._put(self._open.pop())

    def _put(self, value: object) -> None:
        if not self._open:
            self.documents.append(value)
        elif isinstance(self._open[-1], list):
            self._open[-1].append(value)
        elif self._keys[-1] is None:
            if isinstance(value, list | dict):
                raise YamlUnreadable("A list or mapping is used as a name in the file.")
            self._keys[-1] = value or ""
        else:
            self._open[-1][self._keys[-1]] = value
            self._keys[-1] = None
