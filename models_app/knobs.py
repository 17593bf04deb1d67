"""The knobs of retrieval alone: tried on a copy of a model in memory, and saved when they prove better."""

from copy import copy

from django import forms

from models_app.behaviour import STEPS
from models_app.models import MLModel

KNOBS = ("threshold", "max_context_tokens")


class KnobsForm(forms.ModelForm):
    """Threshold and Max context tokens, refused for what Behaviour refuses; what is not sent is as the model has it.

    The model given stays as it is: `tried` is the one to ask.
    """

    class Meta:
        model = MLModel
        fields = KNOBS

    def __init__(self, model: MLModel, sent: dict | None = None):
        values = {name: getattr(model, name) for name in KNOBS}
        given = {name: sent[name] for name in KNOBS if name in sent} if sent else {}
        super().__init__({**values, **given}, instance=copy(model), auto_id="knob_%s")
        for name in KNOBS:
            self.fields[name].help_text = f"The model has {values[name]:,}."
            self.fields[name].widget.attrs["step"] = STEPS.get(name, "1")
        self.fields["threshold"].widget.attrs |= {"data-key": "t", "aria-keyshortcuts": "t"}

    @property
    def tried(self) -> MLModel:
        """The model with the knobs as they were sent, unsaved."""
        return self.instance

    @property
    def differences(self) -> list[tuple[str, object, object]]:
        """Return the label, the value tried and the model's own of each knob that is turned."""
        return [
            (self.fields[name].label, self.cleaned_data[name], self.initial[name])
            for name in self.changed_data
            if name in self.cleaned_data
        ]

    def save(self) -> MLModel:
        """Write what was turned and nothing else, so that nothing of another person's is undone."""
        self.instance.save(update_fields=self.changed_data)
        return self.instance
