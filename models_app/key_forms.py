"""The form of an API key: which models it opens, how often and, for a public one, from which origins."""

from django import forms
from django.core.exceptions import ValidationError

from models_app.models import MLModel
from tenants.models import ApiKey, Tenant
from tenants.origins import OriginRefused, read_origin

MOST_ORIGINS = 50
MOST_LIVE_KEYS = 100
# Nobody asks faster by hand; an office behind one address still has room.
VISITORS_REQUESTS_A_MINUTE = 30
LIMITS = ("requests_a_minute", "visitor_requests_a_minute", "questions_a_month")


class KeyForm(forms.ModelForm):
    """A key's name, models, origins and limits; its kind is chosen once, when it is made."""

    model_slugs = forms.MultipleChoiceField(
        label="Models", help_text="The key opens these and no others.", widget=forms.CheckboxSelectMultiple
    )
    origins = forms.CharField(
        label="Origins",
        required=False,
        help_text="For a public key: the sites whose pages may use it, one a line, such as https://www.example.com or "
        "*.example.com for all its sub-domains.",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "placeholder": "https://www.example.com"}),
    )

    field_order = ["name", "kind", "model_slugs", "origins"]

    class Meta:
        model = ApiKey
        fields = ["name", "kind", "model_slugs", *LIMITS]
        widgets = {"kind": forms.RadioSelect}
        labels = {
            "requests_a_minute": "Questions a minute",
            "visitor_requests_a_minute": "Questions a minute and visitor",
            "questions_a_month": "Questions a month",
        }
        help_texts = {
            "name": "Where it is used, so that you know later what revoking it stops.",
            "requests_a_minute": "From all its callers together; more are refused with the time to wait. Empty: as "
            "many as come.",
            "visitor_requests_a_minute": "Under a public key a visitor is an internet address, under a secret key the "
            "user or the session that your server names. Empty: no limit.",
            "questions_a_month": "In a calendar month; then the key answers nothing until the next. Empty: as many as "
            "the workspace may ask.",
        }

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.fields["name"].widget.attrs |= {"autofocus": True, "autocomplete": "off"}
        self.fields["model_slugs"].choices = self._model_choices()
        self.fields["origins"].initial = "\n".join(self.instance.allowed_origins)
        if not self.instance.pk:
            self.initial["visitor_requests_a_minute"] = VISITORS_REQUESTS_A_MINUTE
        if self.instance.pk:
            del self.fields["kind"]
            if self.instance.kind == ApiKey.Kind.SECRET:
                del self.fields["origins"]

    def clean_origins(self) -> list[str]:
        entries = [line.strip() for line in self.cleaned_data["origins"].splitlines() if line.strip()]
        try:
            origins = list(dict.fromkeys(read_origin(entry) for entry in entries))
        except OriginRefused as error:
            raise ValidationError(str(error)) from error
        if len(origins) > MOST_ORIGINS:
            raise ValidationError(f"At most {MOST_ORIGINS} origins; *.example.com stands for all its sub-domains.")
        return origins

    def clean(self):
        cleaned = super().clean()
        origins = cleaned.get("origins")
        kind = cleaned.get("kind", self.instance.kind)
        if kind == ApiKey.Kind.PUBLIC and origins == []:
            self.add_error("origins", "A public key works only from the sites listed here: write at least one.")
        if kind == ApiKey.Kind.SECRET and origins:
            self.add_error("origins", "A secret key is for servers, which have no origin: leave this empty.")
        return cleaned

    def mint(self, tenant: Tenant) -> tuple[ApiKey, str]:
        """Return the new key and its text, which is shown once."""
        wanted = self.cleaned_data
        return ApiKey.mint(
            tenant=tenant,
            name=wanted["name"],
            kind=wanted["kind"],
            model_slugs=wanted["model_slugs"],
            allowed_origins=wanted["origins"],
            **{name: wanted[name] for name in LIMITS},
        )

    def change(self) -> ApiKey:
        """Save the key's new name, models, origins and limits."""
        self.instance.allowed_origins = self.cleaned_data.get("origins", [])
        return self.save()

    def _model_choices(self) -> list[tuple[str, str]]:
        known = {model.slug: f"{model.name} ({model.slug})" for model in MLModel.objects.all()}
        gone = {slug: f"{slug} (deleted)" for slug in self.instance.model_slugs if slug not in known}
        return list((known | gone).items())
