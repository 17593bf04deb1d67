// Small controls: menus that close, texts that are copied, Enter that sends, a slug that follows its name.
document.addEventListener("click", async (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) await copyText(document.getElementById(copy.dataset.copy));
});

async function copyText(element) {
  let detail = { text: "Copied." };
  try {
    await navigator.clipboard.writeText(element.textContent.trim());
  } catch {
    getSelection().selectAllChildren(element); // browsers copy by script on secure addresses only
    detail = { text: "Your browser does not let pages copy here: the text is selected, copy it by hand.", level: "bad" };
  }
  document.body.dispatchEvent(new CustomEvent("toast", { detail }));
}

document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && event.target.closest("details.menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// Enter sends a question, as in a chat; with Shift, and while an input method is at work, it is the text's.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.matches("[data-enter-submits]")) return;
  event.preventDefault();
  event.target.form.querySelector("[type='submit']").click();
});

// The slug follows the name it stands for until somebody writes it by hand.
document.addEventListener("input", (event) => {
  const slug = document.querySelector("[data-slug-of]");
  if (!slug) return;
  if (event.target === slug) slug.dataset.isOwn = slug.value;
  if (event.target.id !== slug.dataset.slugOf || slug.dataset.isOwn) return;
  const letters = event.target.value.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  slug.value = letters.replace(/[^a-z0-9]+/g, "-").slice(0, slug.maxLength).replace(/^-+|-+$/g, "");
});
