"""The Import dialog's form: where to start reading, and how."""

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError

from crawler.models import Import
from crawler.site import SiteUnreachable, start_candidates
from tenants.addresses import crawler_policy

LONGEST_DELAY_SECONDS = 60


class ImportForm(forms.ModelForm):
    """A start address as people type it, what snippets keep, and the crawl's limits."""

    class Meta:
        model = Import
        fields = ["address", "import_images", "insert_source_url", "max_pages", "delay_seconds"]
        labels = {
            "address": "Start address",
            "import_images": "Import images",
            "insert_source_url": "Insert source URL",
            "max_pages": "Most pages",
            "delay_seconds": "Pause between pages (seconds)",
        }
        help_texts = {
            "address": "Such as example.com. With a path, such as example.com/help, only what lies below it is read.",
            "import_images": "Snippets keep their images.",
            "insert_source_url": "Each snippet ends with its page's address; it counts in the token budget.",
            "max_pages": "The import ends there and says so.",
            "delay_seconds": "Be gentle with small servers. A longer pause that the site asks for is kept in any case.",
        }
        widgets = {
            "address": forms.TextInput(
                attrs={"autofocus": True, "inputmode": "url", "autocomplete": "url", "placeholder": "example.com"}
            ),
            "delay_seconds": forms.NumberInput(attrs={"step": "0.1", "min": 0}),
            "max_pages": forms.NumberInput(attrs={"min": 1}),
        }

    def clean_address(self):
        address = self.cleaned_data["address"].strip()
        try:
            start_candidates(address, crawler_policy())
        except SiteUnreachable as error:
            raise ValidationError(f"{error.message}.") from error
        return address

    def clean_max_pages(self):
        pages = self.cleaned_data["max_pages"]
        if not 1 <= pages <= settings.SITEWISE_CRAWL_MAX_PAGES:
            raise ValidationError(
                f"Between 1 and {settings.SITEWISE_CRAWL_MAX_PAGES:,}: more is the operator's to allow."
            )
        return pages

    def clean_delay_seconds(self):
        seconds = self.cleaned_data["delay_seconds"]
        if not 0 <= seconds <= LONGEST_DELAY_SECONDS:
            raise ValidationError(f"Between 0 and {LONGEST_DELAY_SECONDS} seconds.")
        return seconds
