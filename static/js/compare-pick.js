// Two ticked rows are compared. A third tick takes the place of the first.
const picked = (form) => [...form.querySelectorAll("[data-pick]:checked")];

const refresh = (form, last) => {
  const chosen = picked(form);
  if (chosen.length > 2 && last) {
    chosen.find((box) => box !== last).checked = false;
    return refresh(form, null);
  }
  for (const box of form.querySelectorAll("[data-pick]")) {
    box.closest("tr")?.toggleAttribute("data-picked", box.checked);
  }
  const button = document.querySelector(`[form="${form.id}"][data-compare]`) || form.querySelector("[data-compare]");
  if (!button) return undefined;
  const label = button.querySelector("[data-compare-label]");
  button.disabled = chosen.length !== 2;
  label.textContent =
    chosen.length === 2
      ? `Compare ${chosen[0].dataset.pick} with ${chosen[1].dataset.pick}`
      : "Choose two to compare";
  return undefined;
};

const refreshAll = () => {
  for (const form of document.querySelectorAll("form[data-compare-form]")) refresh(form, null);
};

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-pick]")) refresh(event.target.form, event.target);
});
document.addEventListener("htmx:load", refreshAll);
refreshAll();
