// The Test tab: keys that jump, the first choice by Enter, the name of a part of a bar of tokens.
const KEYS_OFF = "sitewise-keys-off"; // remembered in this browser

function areKeysOn() {
  return localStorage.getItem(KEYS_OFF) === null;
}

// The choice below or above; above the first stands the field they were found from.
function beside(choice, isBelow) {
  const entry = choice.closest("li");
  const other = isBelow ? entry.nextElementSibling : entry.previousElementSibling;
  return other?.querySelector("button") || (isBelow ? null : document.querySelector("[data-picks]"));
}

// Single keys work outside of fields only; who dictates or types blindly can switch them off.
document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
  const picks = event.target.closest("[data-picks]");
  if (picks && (event.key === "Enter" || event.key === "ArrowDown")) {
    const first = document.querySelector(`${picks.dataset.picks} button`);
    event.preventDefault();
    if (event.key === "Enter") first?.click();
    else first?.focus();
    return;
  }
  const choice = event.target.closest(".choice");
  if (choice && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    beside(choice, event.key === "ArrowDown")?.focus();
    return;
  }
  const isField = event.target.matches("input:not([type='checkbox']), textarea, select");
  if (event.key === "Escape" && isField && event.target.closest("#ask, #why-not")) event.target.blur();
  if (isField || document.querySelector("dialog[open]") || !document.querySelector("[data-keys]") || !areKeysOn()) return;
  const wanted = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!wanted) return;
  event.preventDefault();
  const folded = wanted.closest("details");
  if (folded) folded.open = true;
  wanted.focus();
  wanted.scrollIntoView({ block: "nearest" });
});

addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll("[data-keys]")) box.checked = areKeysOn();
});

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-keys]")) return;
  if (event.target.checked) localStorage.removeItem(KEYS_OFF);
  else localStorage.setItem(KEYS_OFF, "yes");
});

document.addEventListener("click", (event) => {
  const emptying = event.target.closest("[data-empties]");
  if (!emptying) return;
  document.querySelector(emptying.dataset.thenFocus)?.focus();
  document.querySelector(emptying.dataset.empties).replaceChildren();
});

document.addEventListener("htmx:afterSettle", (event) => {
  const chosen = event.target.id === "why-not-answer" && event.target.querySelector("[data-focus-here]");
  if (!chosen) return;
  document.getElementById("why-not-choices").replaceChildren();
  chosen.focus();
});

// Below a bar stands what it shows; while one of its parts is pointed at or has the focus, that part's name.
function nameThePart(event) {
  for (const place of document.querySelectorAll("[data-bar-name]")) {
    const part = place.closest(".progress").contains(event.target) && event.target.closest(".token-bar a");
    place.dataset.barName ||= place.textContent;
    place.textContent = part ? part.getAttribute("aria-label") : place.dataset.barName;
  }
}

document.addEventListener("pointerover", nameThePart);
document.addEventListener("focusin", nameThePart);
