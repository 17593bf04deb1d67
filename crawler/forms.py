"""The Import dialog's forms: what to read, and how; one for a website, one for single pages."""

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError

from crawler.models import URL_LENGTH, Import
from crawler.web import render
from crawler.web.path_patterns import PatternError, parse_patterns
from crawler.web.site import SiteUnreachable, start_candidates
from tenants.addresses import crawler_policy

LONGEST_DELAY_SECONDS = 60
SHOWN_CHARACTERS = 80

LABELS = {
    "address": "Start address",
    "import_images": "Import images",
    "insert_source_url": "Insert source URL",
    "max_pages": "Most pages",
    "max_depth": "Most links away from the start",
    "include_paths": "Read only",
    "exclude_paths": "Leave out",
    "delay_seconds": "Pause between pages (seconds)",
    "imports_documents": "Documents too",
    "renders_scripts": "Draw pages that need scripts",
}
HELP_TEXTS = {
    "address": "Such as example.com. With a path, such as example.com/help, only what lies below it is read.",
    "import_images": "Snippets keep their images.",
    "insert_source_url": "Each snippet ends with its page's address; it counts in the token budget.",
    "max_pages": "The import ends there and says so.",
    "max_depth": "Empty sets no limit.",
    "include_paths": "Paths, one a line, such as /help/ or /*/faq.html$: * stands for anything, $ for the end.",
    "exclude_paths": "The same way: what begins with /archive/, say.",
    "delay_seconds": "Be gentle with small servers. A longer pause that the site asks for is kept in any case.",
    "imports_documents": "PDF, Word, PowerPoint and Excel files that pages link to.",
    "renders_scripts": "Slower: a browser runs the scripts of pages that are empty without them.",
}
WIDGETS = {
    "address": forms.TextInput(
        attrs={"autofocus": True, "inputmode": "url", "autocomplete": "url", "placeholder": "example.com"}
    ),
    "delay_seconds": forms.NumberInput(attrs={"step": "0.1", "min": 0}),
    "max_pages": forms.NumberInput(attrs={"min": 1}),
    "max_depth": forms.NumberInput(attrs={"min": 0}),
    "include_paths": forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    "exclude_paths": forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
}


class WayForm(forms.ModelForm):
    """What both forms ask: what snippets keep, how long to pause, and whether scripts are run."""

    first_fields: tuple[str, ...] = ()  # the rest stands under "More"

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        scripts = self.fields["renders_scripts"]
        if not render.is_available():
            scripts.disabled, self.initial["renders_scripts"] = True, False
            scripts.help_text = "Not possible here: the operator has not installed a browser for it."

    @property
    def asked(self) -> list[forms.BoundField]:
        return [self[name] for name in self.first_fields]

    @property
    def more(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in self.first_fields]

    @property
    def has_errors_in_more(self) -> bool:
        return any(field.errors for field in self.more)

    def clean_delay_seconds(self):
        seconds = self.cleaned_data["delay_seconds"]
        if not 0 <= seconds <= LONGEST_DELAY_SECONDS:
            raise ValidationError(f"Between 0 and {LONGEST_DELAY_SECONDS} seconds.")
        return seconds


class ImportForm(WayForm):
    """A website: where to start, how far to go."""

    first_fields = ("address", "import_images", "insert_source_url")

    class Meta:
        model = Import
        fields = list(LABELS)
        labels, help_texts, widgets = LABELS, HELP_TEXTS, WIDGETS

    def clean_address(self):
        address = self.cleaned_data["address"].strip()
        refuse_address(address)
        return address

    def clean_max_pages(self):
        pages = self.cleaned_data["max_pages"]
        if not 1 <= pages <= settings.SITEWISE_CRAWL_MAX_PAGES:
            raise ValidationError(
                f"Between 1 and {settings.SITEWISE_CRAWL_MAX_PAGES:,}: more is the operator's to allow."
            )
        return pages

    def clean_include_paths(self):
        return self._patterns("include_paths")

    def clean_exclude_paths(self):
        return self._patterns("exclude_paths")

    def _patterns(self, name: str) -> str:
        patterns = self.cleaned_data[name].strip()
        try:
            parse_patterns(patterns)
        except PatternError as error:
            raise ValidationError(f"Line {error.line}: {error.message}") from error
        return patterns


class PagesForm(WayForm):
    """Single pages: their addresses, one a line. What they link to is not followed."""

    first_fields = ("addresses", "import_images", "insert_source_url")

    addresses = forms.CharField(
        label="Addresses",
        help_text="One a line. These pages are read, and none that they link to; a document is imported as well.",
        widget=forms.Textarea(
            attrs={
                "autofocus": True,
                "rows": 6,
                "spellcheck": "false",
                "placeholder": "example.com/prices\nexample.com/help/returns",
            }
        ),
    )

    class Meta:
        model = Import
        fields = ["import_images", "insert_source_url", "delay_seconds", "renders_scripts"]
        labels, help_texts, widgets = LABELS, HELP_TEXTS, WIDGETS

    def clean_addresses(self) -> list[str]:
        """Return the addresses as typed, each once; every line that is none is named."""
        lines = enumerate(self.cleaned_data["addresses"].splitlines(), start=1)
        typed = [(number, line.strip()) for number, line in lines if line.strip()]
        problems = [problem for number, line in typed if (problem := _problem_of(number, line))]
        addresses = list(dict.fromkeys(line for _, line in typed))
        most = settings.SITEWISE_CRAWL_MAX_PAGES
        if len(addresses) > most:
            problems.append(f"{len(addresses):,} addresses: more than {most:,} are the operator's to allow.")
        if problems:
            raise ValidationError(problems)
        return addresses


def refuse_address(address: str) -> None:
    """Raise ValidationError for what is no address of a website, or one that may not be reached."""
    try:
        start_candidates(address, crawler_policy())
    except SiteUnreachable as error:
        raise ValidationError(f"{error.message}.") from error


def _problem_of(number: int, line: str) -> str:
    """Return what is wrong with an address of the list, with its line's number, or ""."""
    if len(line) > URL_LENGTH:
        return f"Line {number}: {line[:SHOWN_CHARACTERS]}… is longer than {URL_LENGTH:,} characters."
    try:
        refuse_address(line)
    except ValidationError as error:
        return f"Line {number}: {' '.join(error.messages)}"
    return ""
