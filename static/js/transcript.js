// Moving through a transcript by keys: the events come from keys.js.
const steps = () =>
  [...document.querySelectorAll("[data-step]")].filter((step) => step.getClientRects().length > 0);

const current = () => document.querySelector("[data-step][data-current]");

const goTo = (step) => {
  if (!step) return;
  current()?.removeAttribute("data-current");
  step.dataset.current = "";
  step.focus({ preventScroll: true });
  step.scrollIntoView({ block: "center" });
};

const inView = () => {
  const marked = current();
  if (marked) return marked;
  return steps().find((step) => step.getBoundingClientRect().bottom > 80);
};

const follow = (rel) => document.querySelector(`[data-transcript] a[rel=${rel}]`)?.click();

const move = (by) => {
  const all = steps();
  const marked = current();
  const next = marked ? all[all.indexOf(marked) + by] : all[0];
  if (next) goTo(next);
  else if (marked) follow(by > 0 ? "next" : "prev");
};

document.addEventListener("next-step", () => move(1));
document.addEventListener("previous-step", () => move(-1));

document.addEventListener("next-error", () => {
  const all = steps();
  const from = all.indexOf(inView());
  const errors = all.filter((step) => step.hasAttribute("data-error"));
  goTo(errors.find((step) => all.indexOf(step) > from) || errors[0]);
});

document.addEventListener("agent-only", () => {
  const transcript = document.querySelector("[data-transcript]");
  const button = document.querySelector("[data-agent-only]");
  const on = transcript.toggleAttribute("data-agent-only-on");
  button?.setAttribute("aria-pressed", String(on));
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-agent-only]")) {
    document.dispatchEvent(new CustomEvent("agent-only"));
    return;
  }
  const step = event.target.closest("[data-step]");
  if (!step || step === current()) return;
  current()?.removeAttribute("data-current");
  step.dataset.current = "";
});

const openCited = () => {
  const asked = new URLSearchParams(location.search).get("step");
  const place = document.getElementById(location.hash.slice(1) || `step-${asked}`);
  const step = place?.closest("[data-step]");
  if (!step) return;
  for (const details of place.querySelectorAll("details.long")) details.open = true;
  goTo(step);
  if (place !== step) place.scrollIntoView({ block: "center" });
};

window.addEventListener("hashchange", openCited);
openCited();
