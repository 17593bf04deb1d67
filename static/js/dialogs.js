// Dialogs: a view's answer put into #dialog opens; a 204 from inside it closes it; leaving one with changes asks first.
let opener = null; // what had the focus when the first of a chain of dialogs was asked for

const FIELDS = ["[aria-invalid='true']", "[autofocus]", ":is(input:not([type='hidden']), textarea, select):enabled"];

function openedDialog() {
  return document.querySelector("#dialog > dialog");
}

function mayLeave(dialog) {
  const isChanged = dialog.dataset.refused === "true" || dialog.dataset.touched === "true";
  return !isChanged || confirm("Close without saving? Your changes will be lost.");
}

function openDialog(dialog) {
  if (dialog.open) return;
  dialog.showModal();
  const fields = FIELDS.map((kind) => dialog.querySelector(`.dialog__body ${kind}`));
  fields.find(Boolean)?.focus(); // else the browser takes the first control, which closes the dialog
  dialog.addEventListener("input", () => {
    dialog.dataset.touched = "true";
  });
  dialog.addEventListener("cancel", (event) => {
    if (event.target === dialog && !mayLeave(dialog)) event.preventDefault();
  });
  dialog.addEventListener("close", () => {
    dialog.remove(); // which also ends its polling
    // The list behind may have been drawn anew meanwhile: then its button of the same id takes the focus.
    const isGone = !opener?.isConnected || opener === document.body;
    (isGone ? document.getElementById(opener?.id || "content") : opener)?.focus();
    opener = null;
  });
}

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.target?.id === "dialog" && !openedDialog()) opener = document.activeElement;
});

// What a dialog asked for before it was closed must not open it again.
document.addEventListener("htmx:beforeSwap", (event) => {
  const isForDialog = event.detail.target.closest?.("#dialog");
  if (isForDialog && !event.detail.requestConfig.elt.isConnected) event.detail.shouldSwap = false;
});

document.addEventListener("htmx:afterSettle", () => {
  if (openedDialog()) openDialog(openedDialog());
});

document.addEventListener("htmx:afterRequest", (event) => {
  const dialog = event.target.closest?.("#dialog > dialog");
  if (dialog && event.detail.xhr.status === 204) dialog.close();
});

document.addEventListener("click", (event) => {
  const dialog = event.target.closest("dialog");
  if (dialog && event.target.closest("[data-dialog-close]") && mayLeave(dialog)) dialog.close();
});
