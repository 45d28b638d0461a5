// An undo bar counts its seconds down and goes when they are over.
const bars = () => document.querySelectorAll("[data-undo]");
const began = performance.now();

const tick = () => {
  const gone = (performance.now() - began) / 1000;
  for (const bar of bars()) {
    const left = Math.ceil(Number(bar.dataset.seconds) - gone);
    const place = bar.querySelector("[data-undo-left]");
    if (left > 0) {
      if (place) place.textContent = String(left);
    } else {
      const had = bar.contains(document.activeElement);
      bar.remove();
      if (had) document.getElementById("content")?.focus();
    }
  }
  if (bars().length) setTimeout(tick, 250);
};

// A page from the history would offer what is final by now.
addEventListener("pageshow", (event) => {
  if (event.persisted && bars().length) location.reload();
});

tick();
