"""What the test of the tenants' walls walks over: every route there is, and a tenant that owns one of everything."""

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from django.apps import apps
from django.contrib.auth import get_user_model
from django.http import HttpResponseBase
from django.urls import URLPattern, URLResolver, get_resolver

from chat.models import Lead, QuestionCount, Session, Turn
from crawler.models import Import, Page, Upload
from models_app.models import DroppedSection, MLModel, PageText, SnippetVersion, TrainingSnippet, Vectorising
from tenants.models import ApiKey, Invitation, Membership, Role, Tenant
from tenants.store import TENANT_APPS, activated, tenant_atomic

OWNED_ID = 4711  # what acme owns has this id in every table, and globex has nothing under it
OWNED_SLUG = "acme-only"
UNKNOWN_ID = 999_999
UNKNOWN_SLUG = "not-there"
SECRET_WORD = "Xylophonium"  # stands in every text acme owns, and may be read by nobody else
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True)
class Route:
    """One address of the installation: its pattern written as `<slug:tenant_slug>/…`, and the view behind it."""

    pattern: str
    view: Callable

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset(PARAMETER.findall(self.pattern))

    def address(self, tenant_slug: str, slug: str, pk: int) -> str:
        """Return the address with every parameter filled in; raises KeyError for one nobody has thought of."""
        values = {"tenant_slug": tenant_slug, "model_slug": slug, "pk": pk, "page_pk": pk}
        values |= {"message_id": UUID(int=pk)}
        return "/" + PARAMETER.sub(lambda match: str(values[match[1]]), self.pattern)


def routes() -> Iterator[Route]:
    """Yield every route of the URL configuration."""
    yield from _below("", get_resolver())


def _below(prefix: str, resolver: URLResolver) -> Iterator[Route]:
    for entry in resolver.url_patterns:
        pattern = prefix + _as_path(str(entry.pattern))
        if isinstance(entry, URLPattern):
            yield Route(pattern, entry.callback)
        else:
            yield from _below(pattern, entry)


def _as_path(pattern: str) -> str:
    """Return a regular expression of a route in the way paths are written; a path stays as it is."""
    pattern = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<\1>", pattern)
    return pattern.removeprefix("^").removesuffix("$").removesuffix("/?").replace(r"\Z", "")


def own_one_of_everything(tenant: Tenant) -> None:
    """Give the tenant one row in every table of tenants, in its store and in the control database."""
    with activated(tenant), tenant_atomic():
        model = MLModel.objects.create(pk=OWNED_ID, slug=OWNED_SLUG, name=SECRET_WORD)
        texts = {"prompt": SECRET_WORD, "completion": f"{SECRET_WORD} costs 12 €."}
        snippet = TrainingSnippet.objects.create(pk=OWNED_ID, model=model, **texts)
        SnippetVersion.objects.create(pk=OWNED_ID, snippet=snippet, cause="edited", **texts)
        address = f"https://acme.test/{SECRET_WORD}"
        PageText.objects.create(pk=OWNED_ID, model=model, uri=address, text=zlib.compress(SECRET_WORD.encode()))
        DroppedSection.objects.create(pk=OWNED_ID, model=model, uri=address, source_hash="9", prompt=SECRET_WORD)
        Vectorising.objects.create(pk=OWNED_ID, model=model, state="done", message=SECRET_WORD)
        job = Import.objects.create(pk=OWNED_ID, model=model, state="done", address=SECRET_WORD, max_pages=1)
        page = Page(pk=OWNED_ID, job=job, url=address, markdown=SECRET_WORD)
        page.source = zlib.compress(f"<main>{SECRET_WORD}</main>".encode())
        page.save(force_insert=True)
        Upload.objects.create(pk=OWNED_ID, model=model, name=SECRET_WORD, kind="text", body=SECRET_WORD.encode())
        Session.objects.create(pk=OWNED_ID, model=model, key=SECRET_WORD, last_used_at="2026-01-01T00:00Z")
        Turn.objects.create(
            pk=OWNED_ID,
            public_id=UUID(int=OWNED_ID),
            model=model,
            session_key=SECRET_WORD,
            question=SECRET_WORD,
            answer=SECRET_WORD,
            outcome="stop",
        )
        Lead.objects.create(pk=OWNED_ID, model=model, email=f"{SECRET_WORD}@acme.test", session_key=SECRET_WORD)
        QuestionCount.objects.create(pk=OWNED_ID, model=model, month="2026-01-01", count=1)
        owned = {each for each in _tenant_models() if each.objects.filter(pk=OWNED_ID).exists()}
    assert owned == _tenant_models(), "a new table: give the tenant a row of it here"
    guest = get_user_model().objects.create_user(username=SECRET_WORD, email="guest@acme.test")
    Membership.objects.create(pk=OWNED_ID, tenant=tenant, user=guest, role=Role.READER)
    Invitation.objects.create(pk=OWNED_ID, tenant=tenant, email="bo@acme.test")
    ApiKey.mint(pk=OWNED_ID, tenant=tenant, name=SECRET_WORD, kind="secret", model_slugs=[OWNED_SLUG])


def everything_stored(*tenants: Tenant) -> dict:
    """Return all rows of the tenants' stores and of the control database's tables about tenants."""
    control = apps.get_app_config("tenants").get_models()
    rows = {each.__name__: list(each.objects.order_by("pk").values()) for each in control}
    rows["people"] = list(get_user_model().objects.order_by("pk").values("pk", "email", "is_staff"))
    for tenant in tenants:
        with activated(tenant):
            for each in _tenant_models():
                rows[f"{each.__name__} of {tenant.slug}"] = list(each.objects.order_by("pk").values())
    return rows


def shown(response: HttpResponseBase, *forget: str) -> str:
    """Return what the response says, without the words to forget and what differs by itself: form tokens."""
    body = b"".join(response.streaming_content) if response.streaming else response.content
    text = re.sub(r'("X-CSRFToken": "|csrfmiddlewaretoken" value=")\w+', r"\1", body.decode())
    for word in forget:
        text = text.replace(word, "")
    return text


def _tenant_models() -> set:
    return {each for app in TENANT_APPS for each in apps.get_app_config(app).get_models()}
