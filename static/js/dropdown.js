// Closes an open dropdown on Escape, on a click elsewhere and when another one opens.
const close = (except) => {
  for (const details of document.querySelectorAll("details[data-dropdown][open]")) {
    if (!details.contains(except)) details.open = false;
  }
};

document.addEventListener("click", (event) => close(event.target.closest("details[data-dropdown]")));

// A choice in a dropdown that swaps the content leaves the focus on the new dropdown.
let chosenIn = "";

document.addEventListener("htmx:beforeSwap", (event) => {
  chosenIn = event.detail.requestConfig?.elt?.closest("details[data-dropdown]")?.id || "";
});

document.addEventListener("htmx:afterSettle", () => {
  if (chosenIn) document.getElementById(chosenIn)?.querySelector("summary").focus();
  chosenIn = "";
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const details = event.target.closest?.("details[data-dropdown][open]");
  if (!details) return;
  details.open = false;
  details.querySelector("summary").focus();
});
