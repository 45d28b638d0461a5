// Cases in the queue are chosen and taken by key; without scripts boxes and buttons do the same.
const rowAt = () => document.activeElement?.closest?.("[data-assign] tbody tr");

const boxes = () => [...document.querySelectorAll("[data-assign] tbody input[type=checkbox]")];

const say = (words) => {
  const live = document.getElementById("live");
  if (live) live.textContent = words;
};

document.addEventListener("choose-entry", () => {
  const box = rowAt()?.querySelector("input[type=checkbox]");
  if (!box || box.disabled) return;
  box.checked = !box.checked;
  say(box.checked ? "Chosen." : "Not chosen.");
});

document.addEventListener("take-entries", (event) => {
  const button = event.target;
  if (!boxes().some((box) => box.checked)) {
    const box = rowAt()?.querySelector("input[type=checkbox]");
    if (!box) {
      say("Choose a case first: go to it with j and k.");
      return;
    }
    box.checked = true;
  }
  button.form.requestSubmit(button);
});

// Back from an act, the keys go on where they were.
const place = decodeURIComponent(location.hash.slice(1));
if (place.startsWith("case-")) document.getElementById(place)?.focus();
