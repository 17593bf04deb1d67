// Dialogs: a view's answer put into #dialog opens; a 204 from inside it closes it; leaving one with changes asks first.
function openedDialog() {
  return document.querySelector("#dialog > dialog");
}

function isChanged(dialog) {
  return dialog.dataset.refused === "true" || dialog.dataset.touched === "true";
}

function mayLeave(dialog) {
  return !isChanged(dialog) || confirm("Close without saving? Your changes will be lost.");
}

function openDialog(dialog) {
  if (dialog.open) return;
  dialog.showModal();
  const wrong = dialog.querySelector("[aria-invalid='true']");
  if (wrong) wrong.focus();
  dialog.addEventListener("input", (event) => {
    if (!event.target.closest("[data-unsaved-ok]")) dialog.dataset.touched = "true";
  });
  dialog.addEventListener("cancel", (event) => {
    if (event.target === dialog && !mayLeave(dialog)) event.preventDefault();
  });
  // An emptied place also ends the polling of a dialog that showed progress.
  dialog.addEventListener("close", () => dialog.remove());
}

addEventListener("DOMContentLoaded", () => {
  if (openedDialog()) openDialog(openedDialog());

  document.body.addEventListener("htmx:afterSettle", () => {
    if (openedDialog()) openDialog(openedDialog());
  });

  document.body.addEventListener("htmx:afterRequest", (event) => {
    const dialog = event.target.closest?.("#dialog > dialog");
    if (dialog && event.detail.xhr.status === 204) dialog.close();
  });

  document.body.addEventListener("click", async (event) => {
    const dialog = event.target.closest("dialog");
    if (dialog && event.target.closest("[data-dialog-close]")) {
      if (mayLeave(dialog)) dialog.close();
    }
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      await navigator.clipboard.writeText(document.getElementById(copy.dataset.copy).textContent.trim());
      document.body.dispatchEvent(new CustomEvent("toast", { detail: { text: "Copied." } }));
    }
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  document.body.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = event.target.closest("details.menu[open]");
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
});

// A slug follows the name it stands for until somebody writes it by hand.
document.addEventListener("input", (event) => {
  const slug = document.querySelector("[data-slug-of]");
  if (!slug) return;
  if (event.target === slug) slug.dataset.isOwn = slug.value ? "true" : "";
  if (event.target.id !== slug.dataset.slugOf || slug.dataset.isOwn) return;
  const letters = event.target.value.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  slug.value = letters.replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, slug.maxLength);
});
