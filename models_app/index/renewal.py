"""Makes the keyword leg of the store anew beside the one that answers, and puts it in its place at once.

Each part is a transaction of its own, so a writer waits for one part and not for all; a question is answered by the old
index until the new one takes over in one transaction. What was left by a run that was stopped is made anew.
"""

from collections.abc import Callable, Sequence
from functools import partial
from uuid import uuid4

from models_app.index.connection import id_list, rows, write, write_each
from models_app.index.damage import despite_damage
from models_app.index.keywords import BATCH, Postings, SnippetText, postings_of
from models_app.terms import TERMS_VERSION
from tenants.store import tenant_atomic

BEGIN = (
    "DROP TABLE IF EXISTS ret_new_snippet",
    "DROP TABLE IF EXISTS ret_new_run",
    # As ret_fts is, which it becomes.
    """CREATE VIRTUAL TABLE ret_new_fts USING fts5 (
        prompt, completion,
        content='', columnsize=0, tokenize="ascii tokenchars '=+#.&-'"
    )""",
    # The texts that were indexed: what changed meanwhile is told by them, and can be taken out again.
    """CREATE TABLE ret_new_snippet (
        id INTEGER PRIMARY KEY,
        model_id INTEGER NOT NULL,
        prompt TEXT NOT NULL,
        completion TEXT NOT NULL,
        terms INTEGER NOT NULL,
        digest BLOB NOT NULL
    )""",
    "CREATE TABLE ret_new_run (token TEXT NOT NULL)",
)
RUN_IS_THERE = "SELECT 1 FROM sqlite_master WHERE name = 'ret_new_run'"
TEXTS = """
SELECT model_id, id, prompt, completion
FROM models_app_trainingsnippet
WHERE id > %(after)s
ORDER BY id
LIMIT %(limit)s
"""
TEXTS_OF = """
SELECT model_id, id, prompt, completion
FROM models_app_trainingsnippet
WHERE id IN (SELECT value FROM json_each(%(ids)s))
"""
INDEXED_OF = """
SELECT model_id, id, prompt, completion
FROM ret_new_snippet
WHERE id IN (SELECT value FROM json_each(%(ids)s))
"""
CHANGED = """
SELECT snippet.id
FROM models_app_trainingsnippet AS snippet
LEFT JOIN ret_new_snippet AS made ON made.id = snippet.id
WHERE made.id IS NULL
OR made.model_id <> snippet.model_id
OR made.prompt <> snippet.prompt
OR made.completion <> snippet.completion
UNION ALL
SELECT made.id
FROM ret_new_snippet AS made
WHERE NOT EXISTS (SELECT 1 FROM models_app_trainingsnippet AS snippet WHERE snippet.id = made.id)
LIMIT %(limit)s
"""
ADD_POSTINGS = "INSERT INTO ret_new_fts (rowid, prompt, completion) VALUES (%(id)s, %(prompt)s, %(completion)s)"
DELETE_POSTINGS = """
INSERT INTO ret_new_fts (ret_new_fts, rowid, prompt, completion)
VALUES ('delete', %(id)s, %(prompt)s, %(completion)s)
"""
ADD_SNIPPET = """
INSERT INTO ret_new_snippet (id, model_id, prompt, completion, terms, digest)
VALUES (%(id)s, %(model_id)s, %(prompt)s, %(completion)s, %(terms)s, %(digest)s)
"""
DELETE_SNIPPETS = "DELETE FROM ret_new_snippet WHERE id IN (SELECT value FROM json_each(%(ids)s))"
TAKE_OVER = (  # once ret_fts has been dropped
    "ALTER TABLE ret_new_fts RENAME TO ret_fts",
    "DELETE FROM ret_snippet",
    "INSERT INTO ret_snippet (id, model_id, terms, digest) SELECT id, model_id, terms, digest FROM ret_new_snippet",
    "DELETE FROM ret_model",
    """INSERT INTO ret_model (model_id, snippets, terms, terms_version)
    SELECT model_id, count(*), sum(terms), %(version)s
    FROM ret_new_snippet
    GROUP BY model_id""",
    "DROP TABLE ret_new_snippet",
    "DROP TABLE ret_new_run",
)

Row = tuple[int, int, str, str]


class RebuildSuperseded(RuntimeError):
    """Another rebuild of this store began meanwhile; it is the one that goes on."""

    def __init__(self):
        super().__init__("Another rebuild of this index began meanwhile, and goes on instead of this one.")


def renew() -> None:
    """Make the keyword leg of all models of the store anew from their rows; raises RebuildSuperseded.

    Mends also a damaged table. Raises StoreDamaged if the rows themselves cannot be read: then the old index stays.
    """
    token, after = uuid4().hex, 0
    despite_damage("ret_new_fts", partial(_begin, token))
    while texts := rows(TEXTS, after=after, limit=BATCH):
        made = _made(texts)  # takes most of the time, and stands in nobody's way
        with tenant_atomic():
            _refuse_superseded(token)
            _add(texts, made)
        after = texts[-1][1]
    while not despite_damage("ret_fts", partial(_took_over, token)):
        pass


def _begin(token: str, drop_left: Callable[[], None]) -> None:
    with tenant_atomic():
        drop_left()
        for sql in BEGIN:
            write(sql)
        write("INSERT INTO ret_new_run (token) VALUES (%(token)s)", token=token)


def _took_over(token: str, drop_old: Callable[[], None]) -> bool:
    """Follow what changed since its text was read; put the new index in place once that is all."""
    with tenant_atomic():
        _refuse_superseded(token)
        changed = [row[0] for row in rows(CHANGED, limit=BATCH)]
        _remove(rows(INDEXED_OF, ids=id_list(changed)))
        texts = rows(TEXTS_OF, ids=id_list(changed))
        _add(texts, _made(texts))
        if len(changed) == BATCH:
            return False
        drop_old()
        for sql in TAKE_OVER:
            write(sql, version=TERMS_VERSION)
    return True


def _refuse_superseded(token: str) -> None:
    if not rows(RUN_IS_THERE) or rows("SELECT token FROM ret_new_run") != [(token,)]:
        raise RebuildSuperseded


def _made(texts: Sequence[Row]) -> list[Postings]:
    return [postings_of(model_id, SnippetText(*text)) for model_id, *text in texts]


def _add(texts: Sequence[Row], made: Sequence[Postings]) -> None:
    write_each(ADD_POSTINGS, [vars(one) for one in made])
    keys = ("model_id", "id", "prompt", "completion")
    pairs = zip(texts, made, strict=True)
    write_each(
        ADD_SNIPPET,
        [dict(zip(keys, text, strict=True)) | {"terms": one.terms, "digest": one.digest} for text, one in pairs],
    )


def _remove(texts: Sequence[Row]) -> None:
    write_each(DELETE_POSTINGS, [vars(one) for one in _made(texts)])
    write(DELETE_SNIPPETS, ids=id_list(key for _, key, *_ in texts))
