"""What a model knows of pages already: of which it has snippets, and which texts these were made of."""

from models_app.models import MLModel, TrainingSnippet


def known_pages(model: MLModel) -> set[str]:
    """Return the pages that have snippets, or of which the owner has deleted some: the others are all new."""
    snippets, dropped = model.snippets.order_by(), model.dropped_sections.order_by()
    return {*snippets.values_list("uri", flat=True).distinct(), *dropped.values_list("uri", flat=True).distinct()}


def known_hashes(model: MLModel, uri: str, source: str = TrainingSnippet.Source.CRAWL) -> frozenset[str]:
    """Return what the texts are recognised by that the page's snippets were made of."""
    return frozenset(model.snippets.filter(uri=uri, source=source).order_by().values_list("source_hash", flat=True))
