// Applies the chosen theme before the first paint, and lets the menu's choice change it.
const THEMES = ["system", "light", "dark"];

function chosenTheme() {
  try {
    return localStorage.getItem("theme") || "system";
  } catch {
    return "system"; // storage may be forbidden; the system's theme then stands
  }
}

function applyTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

applyTheme(chosenTheme());

addEventListener("DOMContentLoaded", () => {
  for (const choice of document.querySelectorAll("[data-theme-choice]")) {
    choice.checked = choice.value === chosenTheme();
    choice.addEventListener("change", () => {
      if (!THEMES.includes(choice.value)) return;
      applyTheme(choice.value);
      try {
        localStorage.setItem("theme", choice.value);
      } catch {
        // It holds until the next page.
      }
    });
  }
});
