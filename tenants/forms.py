"""Forms of workspaces, members and invitations."""

import logging

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import slugify

from tenants import installation
from tenants.models import Membership, Role, Tenant
from tenants.store import StoreNotReady

logger = logging.getLogger(__name__)

SLUG_LENGTH = Tenant._meta.get_field("slug").max_length


class TenantForm(forms.ModelForm):
    """A new workspace: the slug may be left to be made from the name."""

    class Meta:
        model = Tenant
        fields = ["name", "slug"]
        labels = {"name": "Name", "slug": "Address"}
        help_texts = {
            "name": "Your company, site or team, as your colleagues know it.",
            "slug": "Its place on this site, such as “acme-shop”. Left empty, it is made from the name.",
        }

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.fields["name"].widget.attrs |= {"autofocus": True, "autocomplete": "organization"}
        self.fields["slug"].required = False
        self.fields["slug"].widget.attrs |= {"data-slug-of": "id_name", "autocomplete": "off", "spellcheck": "false"}

    def clean(self):
        cleaned = super().clean()
        if not cleaned.get("slug") and "slug" not in self.errors:
            cleaned["slug"] = slugify(cleaned.get("name", ""))[:SLUG_LENGTH].strip("-_")
            if cleaned.get("name") and not cleaned["slug"]:
                self.add_error("slug", "No address can be made from this name: choose one, in a-z, 0-9 and hyphens.")
        return cleaned

    def create(self, owner) -> Tenant | None:
        """Return the new workspace with its owner, or None with the reason beside the field."""
        try:
            return installation.create_tenant(self.cleaned_data["slug"], self.cleaned_data["name"], owner)
        except ValidationError as error:
            self.add_error(None, error)
        except (StoreNotReady, OSError):
            logger.exception("The workspace %s could not be made.", self.cleaned_data["slug"])
            self.add_error(None, "The workspace could not be made just now. Try again, or tell the operator.")
        return None


class InvitationForm(forms.Form):
    """Who is invited, and as what."""

    email = forms.EmailField(label="E-mail address", help_text="They need no account yet: the link leads them to one.")
    role = forms.ChoiceField(
        label="Role", choices=Role.choices, initial=Role.EDITOR, widget=forms.RadioSelect, required=True
    )


class RoleForm(forms.ModelForm):
    """What a member may do."""

    class Meta:
        model = Membership
        fields = ["role"]
        widgets = {"role": forms.RadioSelect}
