"""The forms of signing up and in: allauth's, with our words beside the fields instead of inside them."""

from allauth.account import forms as allauth_forms
from allauth.core import context

from tenants.accounts import pending_invitation

ADVICE = "At least 8 characters, not only digits, and none of the passwords everybody uses."
LABELS = {
    "login": "E-mail address",
    "email": "E-mail address",
    "oldpassword": "Your password now",
    "password1": "Password",
    "password2": "The same password again",
}
LABELS_OF_A_CHANGE = LABELS | {"password1": "New password"}


class PlainFields:
    """Takes what allauth writes into the fields out again: it is gone as soon as one types."""

    advised = ""
    focused = ""
    labels = LABELS

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        for name, field in self.fields.items():
            field.widget.attrs.pop("placeholder", None)
            field.label = self.labels.get(name, field.label)
        if self.advised:
            self.fields[self.advised].help_text = ADVICE
        if self.focused:
            self.fields[self.focused].widget.attrs["autofocus"] = True


class LoginForm(PlainFields, allauth_forms.LoginForm):
    focused = "login"


class SignupForm(PlainFields, allauth_forms.SignupForm):
    """Who comes by an invitation signs up with the invited address and no other."""

    advised = "password1"
    focused = "email"

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        invitation = pending_invitation(context.request)
        if invitation is not None:
            email = self.fields["email"]
            email.disabled, self.initial["email"] = True, invitation.email
            email.help_text = f"Your invitation to {invitation.tenant.name} is for this address."


class AddEmailForm(PlainFields, allauth_forms.AddEmailForm):
    pass


class ChangePasswordForm(PlainFields, allauth_forms.ChangePasswordForm):
    labels = LABELS_OF_A_CHANGE
    advised = "password1"


class SetPasswordForm(PlainFields, allauth_forms.SetPasswordForm):
    advised = "password1"


class ResetPasswordForm(PlainFields, allauth_forms.ResetPasswordForm):
    focused = "email"


class ResetPasswordKeyForm(PlainFields, allauth_forms.ResetPasswordKeyForm):
    labels = LABELS_OF_A_CHANGE
    advised = focused = "password1"


class ReauthenticateForm(PlainFields, allauth_forms.ReauthenticateForm):
    focused = "password"
