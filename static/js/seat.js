// How long an item is still reserved: a warning before the end, and a word when it is over.
const WARN = 120;
const seat = document.querySelector("[data-seat]");
const began = performance.now();
let warned = "";

const say = (words) => {
  const live = document.getElementById("live");
  if (live) live.textContent = words;
};

const warn = (kind, words) => {
  seat.querySelector("[data-seat-left]").textContent = ` ${words}`;
  seat.dataset.level = kind;
  if (warned === kind) return;
  warned = kind;
  say(words);
};

const tick = () => {
  const left = Math.ceil(Number(seat.dataset.seconds) - (performance.now() - began) / 1000);
  if (left <= 0) {
    warn("over", "The reservation has ended: your label counts only if nobody else took the item.");
    return;
  }
  if (left <= WARN) warn("soon", left > 60 ? "Less than two minutes left." : "Less than a minute left.");
  setTimeout(tick, Math.min(1000 * Math.max(1, left - WARN), 5000));
};

if (seat) tick();
