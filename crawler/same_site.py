"""Which of a model's imports read the website that it names, and what the next one takes over from them."""

from crawler.models import Import
from crawler.web.site import site_key
from models_app.models import MLModel

# These are settings of the model, and may have been changed since.
OF_THE_MODEL = frozenset({"import_images", "insert_source_url"})


def imports_of_site(model: MLModel) -> list[Import]:
    """Return the imports of the model's website, newest first; of a model that names none, those of any website."""
    imports = model.imports.filter(kind=Import.Kind.SITE)
    website = site_key(model.website)
    return [job for job in imports if not website or website in (site_key(job.address), site_key(job.scope))]


def options_of_site(model: MLModel) -> dict:
    """Return what was chosen for the newest import of the model's website and holds for the next one."""
    newest = next(iter(imports_of_site(model)), None)
    return {name: value for name, value in newest.options.items() if name not in OF_THE_MODEL} if newest else {}
