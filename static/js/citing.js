// Citing steps of a transcript: a button at each step and a key write into the field of steps.
const field = () => document.querySelector("[data-cites]");

const shown = (selector) =>
  [...document.querySelectorAll(selector)].filter((step) => step.getClientRects().length > 0);

const numbers = () =>
  (field()?.value.match(/\d+/g) || []).map(Number).filter((number) => number > 0);

const say = (words) => {
  const live = document.getElementById("live");
  if (live) live.textContent = words;
};

const draw = () => {
  const cited = new Set(numbers());
  for (const button of document.querySelectorAll("[data-cite]")) {
    const is = cited.has(Number(button.dataset.cite));
    button.setAttribute("aria-pressed", String(is));
    button.textContent = is ? "Cited by you" : "Cite";
    button.closest("[data-step]").toggleAttribute("data-cited-by-you", is);
  }
};

const cite = (number) => {
  const input = field();
  if (!input || input.disabled) return;
  const before = numbers();
  const is = before.includes(number);
  const after = is ? before.filter((each) => each !== number) : [...before, number];
  input.value = [...new Set(after)].sort((a, b) => a - b).join(", ");
  input.dispatchEvent(new Event("input", { bubbles: true }));
  say(is ? `Step ${number} is no longer cited.` : `Step ${number} is cited.`);
};

const add = () => {
  if (!field() || field().disabled) return;
  for (const step of document.querySelectorAll("[data-step]")) {
    if (step.querySelector("[data-cite]")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn small quiet cite";
    button.dataset.cite = step.dataset.step;
    button.setAttribute("aria-label", `Cite step ${step.dataset.step}`);
    step.append(button);
  }
  draw();
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-cite]");
  if (button) cite(Number(button.dataset.cite));
});

document.addEventListener("cite-step", () => {
  const step = document.querySelector("[data-step][data-current]");
  if (step) cite(Number(step.dataset.step));
  else say("Go to a step first: e for the next cited one, n and p for the next and the previous.");
});

document.addEventListener("input", (event) => {
  if (event.target.matches?.("[data-cites]")) draw();
});

document.addEventListener("next-cited", () => {
  const all = shown("[data-step]");
  const at = all.indexOf(document.querySelector("[data-step][data-current]"));
  const cited = all.filter((step) => step.hasAttribute("data-cited"));
  const next = cited.find((step) => all.indexOf(step) > at);
  const beyond = document.querySelector("[data-next-cited]");
  const target = next || (beyond ? null : cited[0]);
  if (!target) {
    if (beyond) beyond.click();
    else say("No step is cited.");
    return;
  }
  document.querySelector("[data-step][data-current]")?.removeAttribute("data-current");
  target.dataset.current = "";
  target.focus({ preventScroll: true });
  target.scrollIntoView({ block: "center" });
});

document.addEventListener("cited-only", () => {
  const transcript = document.querySelector("[data-transcript]");
  const on = transcript?.toggleAttribute("data-cited-only-on");
  document.querySelector("[data-cited-only]")?.setAttribute("aria-pressed", String(on));
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-cited-only]")) {
    document.dispatchEvent(new CustomEvent("cited-only"));
  }
});

add();
