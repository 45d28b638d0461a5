// The bar of a deciding page: submitted decisions are held for some seconds, Ctrl+Enter submits.
const bar = () => document.querySelector("[data-deciding]");

const say = (words) => {
  const live = document.getElementById("live");
  if (live) live.textContent = words;
};

const hold = document.querySelector("[data-deciding] [data-hold]");
if (hold) hold.value = "1"; // with scripts there is an undo bar, so that it need not be final

const decide = () => {
  const form = bar();
  const button = form?.querySelector("[data-decide]:not(:disabled)");
  if (button) form.requestSubmit(button);
};

document.addEventListener("decide-now", decide);

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.repeat) return;
  if (!bar() || document.querySelector("dialog[open]")) return;
  if (event.target instanceof Element && event.target.closest("[data-skip]")) return;
  event.preventDefault();
  decide();
});

// Two clicks are one decision: the server says so as well.
document.addEventListener("submit", (event) => {
  if (!event.target.matches?.("[data-deciding]")) return;
  if (event.submitter && !event.submitter.matches("[data-decide]")) return;
  if (event.target.dataset.sent) {
    event.preventDefault();
    return;
  }
  event.target.dataset.sent = "1";
});

// Back from the history, the form can be sent again.
window.addEventListener("pageshow", () => {
  if (bar()) delete bar().dataset.sent;
});

document.addEventListener("write-reason", () => {
  const reason = document.querySelector("[data-decision-reason]");
  if (!reason) return;
  reason.focus();
  reason.setSelectionRange(reason.value.length, reason.value.length);
});

document.addEventListener("change", (event) => {
  if (event.target.matches?.("[data-deciding] input[name=decision]")) {
    say(`${event.target.closest("label").querySelector("span").textContent} is chosen.`);
  }
});

// The reason of a skip is written as soon as its field is there.
document.addEventListener(
  "toggle",
  (event) => {
    if (event.target.matches?.("[data-skip]") && event.target.open) {
      event.target.querySelector("[data-skip-reason]")?.focus();
    }
  },
  true,
);
