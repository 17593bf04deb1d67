"""The tables of the index. Only models_app/index.py reads and writes them."""

from django.db import migrations

TABLES = {
    # One row a model: the statistics of its keyword leg, and by which terms.TERMS_VERSION they were made.
    "ret_model": """
        CREATE TABLE ret_model (
            model_id INTEGER PRIMARY KEY,
            snippets INTEGER NOT NULL,
            terms INTEGER NOT NULL,
            terms_version TEXT NOT NULL
        )""",
    # One row a snippet: how many terms it has, and a digest of them (a delete has to name what was indexed).
    "ret_snippet": """
        CREATE TABLE ret_snippet (
            id INTEGER PRIMARY KEY,
            model_id INTEGER NOT NULL,
            terms INTEGER NOT NULL,
            digest BLOB NOT NULL
        )""",
    # The postings of all models, kept apart by the prefix of each term. 'ascii' leaves every other character alone.
    "ret_fts": """
        CREATE VIRTUAL TABLE ret_fts USING fts5 (
            prompt, completion,
            content='', columnsize=0, tokenize="ascii tokenchars '=+#.&-'"
        )""",
    "ret_term": "CREATE VIRTUAL TABLE ret_term USING fts5vocab (ret_fts, 'row')",
    "ret_posting": "CREATE VIRTUAL TABLE ret_posting USING fts5vocab (ret_fts, 'instance')",
    # The vectors of a model in one embedding space, in chunks. `ids` (int64, 0 = removed) lie apart from `vectors`
    # (float32 unit rows), so that removing one does not rewrite half a megabyte.
    "ret_space": """
        CREATE TABLE ret_space (
            id INTEGER PRIMARY KEY,
            model_id INTEGER NOT NULL,
            name TEXT NOT NULL,
            dimensions INTEGER NOT NULL,
            UNIQUE (model_id, name)
        )""",
    "ret_chunk": """
        CREATE TABLE ret_chunk (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            space_id INTEGER NOT NULL,
            size INTEGER NOT NULL,
            ids BLOB NOT NULL
        )""",
    "ret_vectors": """
        CREATE TABLE ret_vectors (
            chunk_id INTEGER PRIMARY KEY,
            vectors BLOB NOT NULL
        )""",
}
INDEXES = (
    "CREATE INDEX ret_snippet_model ON ret_snippet (model_id)",
    "CREATE INDEX ret_chunk_space ON ret_chunk (space_id)",
)


class Migration(migrations.Migration):
    dependencies = [("models_app", "0001_initial")]

    operations = [
        migrations.RunSQL(sql, f"DROP TABLE {name}") for name, sql in TABLES.items()
    ] + [migrations.RunSQL(sql, migrations.RunSQL.noop) for sql in INDEXES]
