// Finds text in the transcript's loaded steps by the browser's highlights; Enter goes to the next.
let ranges = [];
let position = -1;

const places = (root) => {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  return nodes;
};

const rangesOf = (words) => {
  const wanted = words.toLowerCase();
  const found = [];
  for (const step of document.querySelectorAll("[data-step]")) {
    for (const node of places(step)) {
      const text = node.data.toLowerCase();
      for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + wanted.length);
        found.push(range);
        if (found.length === 2000) return found;
      }
    }
  }
  return found;
};

const show = (field) => {
  const count = document.querySelector("[data-find-count]");
  if (globalThis.CSS?.highlights) {
    if (ranges.length) CSS.highlights.set("found", new Highlight(...ranges));
    else CSS.highlights.delete("found");
  }
  if (!field.value) count.textContent = "";
  else if (!ranges.length) count.textContent = "nothing found in these steps";
  else count.textContent = position < 0 ? `${ranges.length} found, Enter goes on` : `${position + 1} of ${ranges.length}`;
};

const go = (by) => {
  position = (position + by + ranges.length) % ranges.length;
  const element = ranges[position].startContainer.parentElement;
  for (let details = element.closest("details"); details; details = details.parentElement.closest("details")) {
    details.open = true;
  }
  element.scrollIntoView({ block: "center" });
};

document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-find]")) return;
  ranges = event.target.value ? rangesOf(event.target.value) : [];
  position = -1;
  show(event.target);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches?.("[data-find]") || !ranges.length) return;
  event.preventDefault();
  go(event.shiftKey ? -1 : 1);
  show(event.target);
});
