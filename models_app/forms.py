"""Forms about models and snippets: what a person may type, and what is said beside the field when it will not do."""

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import slugify

from models_app.models import MLModel, TrainingSnippet
from tenants.addresses import AddressRefused, crawler_policy, refuse_url

LONGEST_SNIPPET_CHARACTERS = 200_000


def read_website(typed: str) -> str:
    """Return a website's address as it was typed, with or without http(s)://; raises ValidationError for others."""
    typed = typed.strip()
    if typed:
        try:
            refuse_url(typed if "://" in typed else f"https://{typed.lstrip('/')}", crawler_policy())
        except AddressRefused as error:
            raise ValidationError(f"This is no address of a website that can be imported: {error}") from error
    return typed


class NewModelForm(forms.ModelForm):
    """A model's name, address part and website; everything else starts with the product's defaults."""

    website = forms.CharField(
        max_length=500,
        required=False,
        help_text="Where it should learn from, such as example.com. The import dialog opens with it.",
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "url", "placeholder": "example.com"}),
    )

    class Meta:
        model = MLModel
        fields = ["name", "slug", "website"]
        help_texts = {
            "name": "As your team sees it.",
            "slug": "The model's name in addresses and in the API. Left empty, it is made from the name.",
        }
        widgets = {
            "name": forms.TextInput(attrs={"autofocus": True, "autocomplete": "off"}),
            "slug": forms.TextInput(attrs={"data-slug-of": "id_name", "autocomplete": "off", "spellcheck": "false"}),
        }

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.fields["slug"].required = False

    def clean_website(self):
        return read_website(self.cleaned_data["website"])

    def clean_slug(self):
        length = MLModel._meta.get_field("slug").max_length
        slug = self.cleaned_data["slug"] or slugify(self.cleaned_data.get("name", ""))[:length].strip("-")
        if not slug:
            raise ValidationError("Choose a slug of latin letters, digits and hyphens: the name has none of them.")
        if MLModel.objects.filter(slug=slug).exists():
            raise ValidationError(f"There is a model “{slug}” already.")
        return slug


class DeleteModelForm(forms.Form):
    """The slug, typed by hand: what is deleted does not come back."""

    typed_slug = forms.CharField(
        label="Type the model's slug to confirm", widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, model: MLModel, *arguments, **options):
        super().__init__(*arguments, **options)
        self._model = model

    def clean_typed_slug(self):
        typed = self.cleaned_data["typed_slug"].strip()
        if typed != self._model.slug:
            raise ValidationError(f"That is not “{self._model.slug}”. Nothing was deleted.")
        return typed


class SnippetForm(forms.ModelForm):
    """A snippet's title, text and page."""

    completion = forms.CharField(
        label="Text",
        strip=False,
        max_length=LONGEST_SNIPPET_CHARACTERS,
        help_text="Markdown. One subject a snippet.",
        widget=forms.Textarea(attrs={"rows": 14}),
    )

    class Meta:
        model = TrainingSnippet
        fields = ["prompt", "completion", "uri"]
        labels = {"prompt": "Title", "uri": "Page address"}
        help_texts = {
            "prompt": "Best phrased as the question a visitor would ask: it is half of what retrieval goes by.",
            "uri": "Shown as the source of answers.",
        }
        widgets = {
            "prompt": forms.Textarea(attrs={"rows": 2}),
            "uri": forms.TextInput(attrs={"inputmode": "url"}),
        }

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        if self.instance.pk and self.instance.source != TrainingSnippet.Source.MANUAL:
            self.fields["uri"].disabled = True
            self.fields["uri"].label = "Comes from"
            self.fields["uri"].help_text = "The next import compares the snippet with what is there."

    def clean_prompt(self):
        return " ".join(self.cleaned_data["prompt"].split())

    def clean_completion(self):
        # Browsers send line ends as CRLF: kept so, a text nobody changed would look edited.
        text = self.cleaned_data["completion"].replace("\r\n", "\n")
        if not text.strip():
            raise ValidationError("The text is empty.")
        return text

    def clean_uri(self):
        uri = self.cleaned_data["uri"].strip()
        if self.fields["uri"].disabled:
            return uri  # it may be the name of a file
        if uri and not uri.lower().startswith(("http://", "https://")):
            raise ValidationError("A page's address begins with http:// or https://.")
        return uri
