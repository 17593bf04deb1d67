"""Questions of any kind, asked as the product asks them: none raises, and a megabyte holds up nobody."""

from tests.benchmarks.bench_questions import ask_all, corpus_of, make_kinds, read_sets, teach_texts

QUESTIONS, SNIPPETS = 500, 1_000
MOST_SECONDS = 20  # for a megabyte on the busiest of machines: no measure of how long it should take


def test_no_question_raises_whatever_it_is(acme_store):
    sets = read_sets()
    model = teach_texts(corpus_of(sets, SNIPPETS))
    told = ask_all(model, make_kinds(QUESTIONS, sets, SNIPPETS))
    assert sum(map(len, told.values())) >= QUESTIONS
    assert [each for asked in told.values() for each in asked if each.error] == []
    assert max(each.clock for each in told["a megabyte"]) < MOST_SECONDS
