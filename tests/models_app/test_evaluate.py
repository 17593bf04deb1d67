"""Scores of rankings, and manage.py evaluate: what it prints, what it leaves behind, what it refuses and why."""

import gzip
import io
import json
import random
import sys

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from models_app.evaluate import Scores, mean, score
from tests.conftest import needs_local_embedder

FIGURES = ["ndcg@10", "recall@10", "mrr@10", "hit@1", "p50_ms", "p95_ms"]
DOCUMENTS = [
    {"id": "returns", "title": "Returns", "text": "Send it back within thirty days."},
    {"id": "hours", "title": "Opening hours", "text": "We are open from nine to five."},
    {"id": "cycling", "title": "", "text": "Bicycles are repaired while you wait."},
]
QUESTIONS = [{"id": "q1", "text": "bicycles"}, {"id": "q2", "text": "open hours"}, {"id": "q3", "text": "unanswered"}]
QRELS = "qid\tdocid\trel\nq1\tcycling\t1\nq2\thours\t2\nq2\treturns\t0\n"


def as_lines(rows: list[dict]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def collection(tmp_path):
    """A folder with three documents and two questions that have an answer."""
    with gzip.open(tmp_path / "corpus.jsonl.gz", "wt") as file:
        file.write(as_lines(DOCUMENTS))
    (tmp_path / "queries.jsonl").write_text(as_lines(QUESTIONS))
    (tmp_path / "qrels.tsv").write_text(QRELS)
    return tmp_path


def evaluated(folder, *options: str) -> str:
    out = io.StringIO()
    call_command("evaluate", "--collection", str(folder), *options, stdout=out)
    return out.getvalue()


def refusal(folder) -> str:
    with pytest.raises(CommandError) as error:
        evaluated(folder, "--keyword")
    return str(error.value)


def test_a_ranking_in_the_right_order_is_perfect():
    assert score(["a", "b", "x"], {"a": 2, "b": 1}) == Scores(ndcg=1, recall=1, mrr=1, hit=1)


def test_a_more_relevant_document_further_down_costs_gain_alone():
    found = score(["b", "a"], {"a": 2, "b": 1})
    assert (found.recall, found.mrr, found.hit) == (1, 1, 1)
    assert found.ndcg == pytest.approx((1 + 2 / 1.584962500721156) / (2 + 1 / 1.584962500721156))


def test_what_is_judged_as_wrong_counts_as_unjudged():
    assert score(["x", "a"], {"x": 0, "y": -1, "a": 1}) == score(["z", "a"], {"a": 1})


def test_the_eleventh_rank_is_not_looked_at():
    assert score([*range(10), "a"], {"a": 1}) == Scores(0, 0, 0, 0)
    assert score([*range(9), "a"], {"a": 1}).mrr == 0.1


def test_an_id_counts_where_it_first_stands():
    assert score(["x", "x", "a", "a"], {"a": 1, "b": 1}) == score(["x", "a"], {"a": 1, "b": 1})


def test_nothing_found_scores_nothing():
    assert score([], {"a": 1}) == Scores(0, 0, 0, 0)


def test_the_mean_is_taken_of_each_score():
    assert mean([Scores(1, 1, 1, 1), Scores(0, 0.5, 0.25, 0)]) == Scores(0.5, 0.75, 0.625, 0.5)


def test_scores_are_those_of_the_shared_baseline(shared, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(shared / "data" / "retrieval")])
    from baseline import score as baseline_score

    chance = random.Random(7)
    names = [f"d{number}" for number in range(40)]
    judged, run = {}, {}
    for number in range(60):
        judged[number] = {name: chance.randint(1, 3) for name in chance.sample(names, chance.randint(1, 15))}
        run[number] = chance.sample(names, chance.randint(0, 20))
    ours = mean([score(run[key], judged[key]) for key in judged])
    assert (ours.ndcg, ours.recall, ours.mrr) == pytest.approx(baseline_score(run, judged))


def test_keyword_alone_is_measured_without_vectors(db, collection):
    report = json.loads(evaluated(collection, "--keyword", "--json"))
    assert list(report) == ["keyword"]
    assert list(report["keyword"]) == FIGURES
    assert [report["keyword"][each] for each in FIGURES[:4]] == [1, 1, 1, 1]
    assert 0 < report["keyword"]["p50_ms"] <= report["keyword"]["p95_ms"]


def test_all_three_retrievals_are_measured_with_the_local_embedder(db, collection):
    needs_local_embedder()
    report = json.loads(evaluated(collection, "--json", "--threshold", "0"))
    assert list(report) == ["keyword", "semantic", "hybrid"]
    assert all(list(figures) == FIGURES for figures in report.values())
    assert report["semantic"]["recall@10"] == report["hybrid"]["hit@1"] == 1


def test_a_person_reads_one_line_for_each_retrieval(db, collection):
    header, line = evaluated(collection, "--keyword").splitlines()
    assert header.split() == FIGURES
    assert line.split()[:5] == ["keyword", "1.000", "1.000", "1.000", "1.000"]


def test_plain_and_packed_files_are_read_alike(db, collection):
    with gzip.open(collection / "queries.jsonl.gz", "wt") as file:
        file.write((collection / "queries.jsonl").read_text())
    (collection / "queries.jsonl").unlink()
    (collection / "corpus.jsonl").write_text(as_lines(DOCUMENTS))
    (collection / "corpus.jsonl.gz").unlink()
    assert json.loads(evaluated(collection, "--keyword", "--json"))["keyword"]["hit@1"] == 1


def test_no_store_is_left_and_no_tenant_is_touched(support, collection, tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(place))
    stores = sorted(settings.STORES_DIR.iterdir())
    evaluated(collection, "--keyword")
    assert not list(place.iterdir())
    assert sorted(settings.STORES_DIR.iterdir()) == stores
    assert not support.snippets.exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("queries.jsonl", "", "queries.jsonl is empty"),
        ("queries.jsonl", '{"id": "q1", "text": "a"}\n{"id": "q2"}\n', "queries.jsonl, line 2: “text” is no text"),
        ("queries.jsonl", '{"id": "q1", "text": "a"}\n\nnothing\n', "queries.jsonl, line 3: this is no JSON"),
        ("queries.jsonl", '{"id": 1, "text": "a"}\n', "line 1: “id” is no text"),
        ("queries.jsonl", '["q1", "a"]\n', "line 1: “id” is no text"),
        ("queries.jsonl", '{"id": "q1", "text": "a"}\n' * 2, "line 2: the id “q1” stands in line 1 already"),
        ("queries.jsonl", b'{"id": "q1", "text": "a"}\n\xff\n', "line 2: this is no UTF-8"),
        ("corpus.jsonl.gz", b"no gzip", "behind line 0: this is no whole gzip file"),
        ("corpus.jsonl.gz", gzip.compress(as_lines(DOCUMENTS).encode())[:-9], "this is no whole gzip file"),
        ("corpus.jsonl.gz", gzip.compress(b""), "corpus.jsonl.gz is empty"),
        ("qrels.tsv", "q1\tcycling\t1\n", "line 1: this is a judgment; write a line “qid docid rel” above"),
        ("qrels.tsv", QRELS + "q1 hours 1\n", "line 5: there are 1 fields"),
        ("qrels.tsv", QRELS + "q1\thours\tyes\n", "line 5: the relevance “yes” is no whole number"),
        ("qrels.tsv", QRELS + "q9\thours\t1\n", "line 5: there is no question “q9”"),
        ("qrels.tsv", QRELS + "q1\tgone\t1\n", "line 5: there is no document “gone”"),
        ("qrels.tsv", "qid\tdocid\trel\nq1\tcycling\t0\n", "judges no document as relevant"),
        ("qrels.tsv", "", "judges no document as relevant"),
    ],
)
def test_a_bad_collection_is_refused_with_the_line_and_what_is_wrong_in_it(db, collection, name, content, said):
    (collection / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert said in refusal(collection)


@pytest.mark.parametrize("name", ["corpus.jsonl.gz", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(db, collection, name):
    (collection / name).unlink()
    assert name.removesuffix(".gz") in refusal(collection)


def test_a_folder_that_is_none_is_named(db, tmp_path):
    assert f"{tmp_path / 'none'} is no folder" in refusal(tmp_path / "none")


@pytest.mark.parametrize("threshold", ["-0.1", "1.5", "nan", "much"])
def test_a_threshold_that_is_no_share_is_refused(db, collection, threshold):
    with pytest.raises(CommandError, match="from 0 to 1"):
        evaluated(collection, f"--threshold={threshold}")
