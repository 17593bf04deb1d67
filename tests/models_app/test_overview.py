"""What the dashboard says about models at a glance."""

from chat.models import Turn
from crawler.models import Import
from models_app import snippets
from models_app.embedder import space_of
from models_app.models import MLModel, TrainingSnippet
from models_app.overview import overview_of, overviews


def test_a_new_model_knows_and_does_nothing(support):
    overview = overview_of(support)
    assert (overview.snippet_count, overview.turn_count, overview.missing_count) == (0, 0, 0)
    assert overview.last_import is None
    assert not overview.is_busy


def test_numbers_are_each_models_own(support):
    other = MLModel.objects.create(slug="other", name="Other")
    one = snippets.add(support, "One", "Text.")
    snippets.add(support, "Two", "Text.")
    snippets.add(other, "Three", "Text.")
    TrainingSnippet.objects.filter(pk=one.pk).update(embedded_in=space_of(support).name)
    for _ in range(3):
        Turn.objects.create(model=other, question="When?")
    counts = {
        each.model.slug: (each.snippet_count, each.missing_count, each.turn_count)
        for each in overviews(MLModel.objects.all())
    }
    assert counts == {"support": (2, 1, 0), "other": (1, 1, 3)}


def test_a_keyword_model_misses_no_vectors(support):
    support.retrieval = "keyword"
    support.save()
    snippets.add(support, "One", "Text.")
    assert overview_of(support).missing_count == 0


def test_the_latest_jobs_count(support):
    Import.objects.create(model=support, address="old.example", max_pages=1, state="done")
    latest = Import.objects.create(model=support, address="new.example", max_pages=1)
    overview = overview_of(support)
    assert overview.last_import == latest
    assert overview.is_importing
    assert overview.is_busy


def test_many_models_take_no_more_queries_than_one(support, django_assert_max_num_queries, acme_store):
    for number in range(10):
        model = MLModel.objects.create(slug=f"m{number}", name=f"M {number}")
        Import.objects.create(model=model, address="a.example", max_pages=1)
    from tenants.store import connection

    with django_assert_max_num_queries(6, connection=connection()):
        overviews(MLModel.objects.all())
