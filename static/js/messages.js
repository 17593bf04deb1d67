// What the page says: toasts that pass, and words for screen readers. Views send `toast` events in HX-Trigger.
const TOAST_MILLISECONDS = 7000;
const ANNOUNCE_AFTER_MILLISECONDS = 150;
let lastAnnounced = "";

// A modal dialog makes the rest of the page inert, so what is said while one is open has to be said inside it. Screen
// readers speak what changes in a place they know: one that has just been put into the page needs a moment.
function announce(text) {
  if (!text || text === lastAnnounced) return;
  lastAnnounced = text;
  setTimeout(() => {
    const place = document.querySelector("#dialog [data-announcer]") || document.querySelector("[data-announcer]");
    if (place) place.textContent = text;
  }, ANNOUNCE_AFTER_MILLISECONDS);
}

function showToast(text, level) {
  const toasts = document.getElementById("toasts");
  if (!text || !toasts) return;
  const toast = document.createElement("div");
  toast.className = level === "bad" ? "toast toast--bad" : "toast";
  const words = document.createElement("span");
  words.textContent = text;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "icon-button";
  close.textContent = "×";
  close.setAttribute("aria-label", "Dismiss message");
  close.addEventListener("click", () => toast.remove());
  toast.append(words, close);
  toasts.append(toast);
  if (toasts.matches(":popover-open")) toasts.hidePopover();
  toasts.showPopover(); // shown anew, it lies above an open dialog
  lastAnnounced = "";
  announce(text);
  // A message of failure stays until it is dismissed.
  if (level !== "bad") setTimeout(() => toast.remove(), TOAST_MILLISECONDS);
}

addEventListener("DOMContentLoaded", () => {
  for (const message of document.querySelectorAll("[data-message]")) {
    showToast(message.textContent.trim(), message.dataset.level);
  }
  document.body.addEventListener("toast", (event) => showToast(event.detail.text, event.detail.level));

  document.body.addEventListener("htmx:afterSettle", (event) => {
    const spoken = event.target.querySelector?.("[data-announce]");
    const isBehindDialog = document.querySelector("#dialog > dialog") && !event.target.closest("#dialog");
    if (spoken && !isBehindDialog) announce(spoken.textContent.replace(/\s+/g, " ").trim());
  });

  document.body.addEventListener("htmx:sendError", () => {
    showToast("The server could not be reached. What you typed is still here: try again.", "bad");
  });

  document.body.addEventListener("htmx:responseError", (event) => {
    const response = event.detail.xhr;
    if (response.getResponseHeader("HX-Trigger")) return; // the view has said it in its own words
    showToast(`That did not work (error ${response.status}). What you typed is still here.`, "bad");
  });

  // A session that ended would put the login page into a part of this one.
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const address = event.detail.xhr.responseURL;
    if (address && new URL(address).pathname.startsWith("/accounts/login")) {
      event.detail.shouldSwap = false;
      location.reload();
    }
  });
});
