// j and k move through the entries of the page's list; Enter then follows the link as always.
const entries = () =>
  [...document.querySelectorAll("[data-moves] tbody th a, [data-moves] > li > a")].filter(
    (link) => link.getClientRects().length > 0,
  );

const move = (by) => {
  const all = entries();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
  all[Math.min(Math.max(next, 0), all.length - 1)].focus();
};

document.addEventListener("next-entry", () => move(1));
document.addEventListener("previous-entry", () => move(-1));
