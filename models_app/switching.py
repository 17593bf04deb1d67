"""The change from one embedding space to another: the old vectors answer until the new ones are complete.

A model's snippets have their vectors in the space that answers, and get those of the wanted one beside them. A text
that changes loses both. `embedded_in` of a snippet names the wanted space as soon as its vectors there are made. The
switch itself is one row of one table, written once no snippet lacks its new vectors: every question before it is
answered in the one space, every question after it in the other.
"""

from django.db.models import QuerySet

from models_app import index
from models_app.embedder import EmbeddingSpace, answering_space, space_of
from models_app.models import MLModel, TrainingSnippet
from tenants.store import tenant_atomic

ROWS_AT_ONCE = 500
PROVIDER = ("embedding_model", "provider_base_url", "provider_key_encrypted")
ANSWERING = ("answering_space", "answering_model", "answering_base_url", "answering_key_encrypted")


def is_switching(model: MLModel) -> bool:
    """Return whether the vectors that answer are not those that the model's settings ask for."""
    return answering_space(model).name != space_of(model).name


def without_vector(model: MLModel) -> QuerySet[TrainingSnippet]:
    """Return the snippets that cannot be found by meaning: without a vector in the space that answers.

    One that has its vector in the wanted space already had one in the other before, or gets it first.
    """
    return model.snippets.exclude(embedded_in__in={answering_space(model).name, space_of(model).name})


def keep_answering(old: MLModel, new: MLModel, forgets_key: bool = False) -> tuple[str, ...]:
    """Let the vectors answer on that were made as the old settings say; returns the fields of `new` to be saved.

    The provider that the owner leaves is kept, with its key unless that is to be forgotten, until the switch or until
    the owner is back.
    """
    before, after = space_of(old), space_of(new)
    answering = old.answering_space
    if answering in ("", after.name):
        new.answering_base_url = new.answering_key_encrypted = ""
    elif answering == before.name and before.name != after.name:
        new.answering_base_url, new.answering_key_encrypted = before.own_url, before.own_key_encrypted
    if forgets_key:
        new.answering_key_encrypted = ""
    return ANSWERING[2:]


def refresh(model: MLModel) -> EmbeddingSpace:
    """Read anew which embedding model is set, which the owner may change at any time; returns the wanted space."""
    model.refresh_from_db(fields=PROVIDER)
    return space_of(model)


def settle(model: MLModel) -> None:
    """Count what there is of the wanted space as made, and drop the vectors that nobody wants or asks any more.

    To be called when the wanted space may have changed. Who goes back to the space that answers has nothing to make.
    """
    wanted = space_of(model).name
    with tenant_atomic():
        answering = answering_space(model).name
        made = index.ids_with_vectors(model.pk, wanted).tolist()
        flagged = set(model.snippets.filter(embedded_in=wanted).values_list("pk", flat=True))
        unflagged = [pk for pk in made if pk not in flagged]
        for start in range(0, len(unflagged), ROWS_AT_ONCE):
            model.snippets.filter(pk__in=unflagged[start : start + ROWS_AT_ONCE]).update(embedded_in=wanted)
        if answering != wanted and not len(index.ids_with_vectors(model.pk, answering)):
            _answer_in(model, space_of(model))  # nothing is lost by it, and what is made answers at once
    _drop_unused(model)


def begin_answering(model: MLModel, space: EmbeddingSpace) -> None:
    """Note, with the first vectors of a model and in their transaction, in which space they answer."""
    MLModel.objects.filter(pk=model.pk, answering_space="").update(
        answering_space=space.name, answering_model=space.model
    )


def switch_if_complete(model: MLModel) -> bool:
    """Let the wanted space answer if no snippet lacks its vectors there; returns whether it answers now.

    Forgets the provider that was kept for the old vectors, and then drops these.
    """
    with tenant_atomic():
        space = refresh(model)
        if model.snippets.exclude(embedded_in=space.name).exists():
            return False
        if model.snippets.exists():
            _answer_in(model, space)
    _drop_unused(model)
    return True


def _drop_unused(model: MLModel) -> None:
    """Drop the vectors that nobody asks or makes; the owner may have changed their mind a moment ago."""
    for name in index.space_names(model.pk):
        if name not in (refresh(model).name, answering_space(model).name):
            index.drop_space(model.pk, name)


def _answer_in(model: MLModel, space: EmbeddingSpace) -> None:
    values = (space.name, space.model, "", "")
    MLModel.objects.filter(pk=model.pk).update(**dict(zip(ANSWERING, values, strict=True)))
