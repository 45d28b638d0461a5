// Elements with the same data-scroll-sync scroll sideways together.
let leader = null;

document.addEventListener(
  "scroll",
  (event) => {
    const group = event.target.dataset?.scrollSync;
    if (!group || (leader && leader !== event.target)) return;
    leader = event.target;
    for (const other of document.querySelectorAll(`[data-scroll-sync="${CSS.escape(group)}"]`)) {
      if (other !== leader) other.scrollLeft = leader.scrollLeft;
    }
    requestAnimationFrame(() => {
      leader = null;
    });
  },
  true,
);
