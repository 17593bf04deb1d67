// Rows to tick: all of this page at once, or all that match, and how many that are. Shift ticks from one row to another.
const ROWS = "input[name='ids']";
let lastTicked = null;

function showSelection(form) {
  const rows = [...form.querySelectorAll(ROWS)];
  const ticked = rows.filter((row) => row.checked).length;
  const page = form.querySelector("[data-select-page]");
  const matching = form.querySelector("[data-select-matching]");
  page.checked = ticked > 0 && ticked === rows.length;
  page.indeterminate = ticked > 0 && ticked < rows.length;
  const count = matching?.checked ? "all selected, on every page" : ticked && `${ticked} selected`;
  form.querySelector("[data-selected-count]").textContent = count ? `· ${count}` : "";
}

document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-selection]");
  if (!form) return;
  const isAll = event.target.matches("[data-select-page], [data-select-matching]");
  if (isAll) for (const row of form.querySelectorAll(ROWS)) row.checked = event.target.checked;
  const matching = form.querySelector("[data-select-matching]");
  // A row that is taken out again means that not all are meant.
  if (matching && event.target !== matching && !event.target.checked) matching.checked = false;
  showSelection(form);
});

document.addEventListener("click", (event) => {
  if (!event.target.matches(`form[data-selection] ${ROWS}`)) return;
  const rows = [...event.target.form.querySelectorAll(ROWS)];
  const [from, to] = [rows.indexOf(lastTicked), rows.indexOf(event.target)].sort((one, other) => one - other);
  if (event.shiftKey && from >= 0) for (const row of rows.slice(from, to + 1)) row.checked = event.target.checked;
  lastTicked = event.target;
});
