// Single keys. An element names its key by data-key; the sheet (`?`) lists every key of the page.
// With data-key-event the key sends that event, else it focuses a field or clicks.
const storeKey = "evalsite-keys";

const areOn = () => {
  try {
    return localStorage.getItem(storeKey) !== "off";
  } catch {
    return true;
  }
};

const isTyping = (target) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.closest("textarea, select, input:not([type=checkbox], [type=radio])"));

const isShown = (element) =>
  element.hasAttribute("data-key-event") || element.getClientRects().length > 0;

// The page's own holder of a key goes before that of the frame.
const holders = () => [
  ...document.querySelectorAll("#content [data-key]"),
  ...document.querySelectorAll("[data-key]"),
];

const holderOf = (key) =>
  holders().find((element) => element.dataset.key === key && isShown(element));

const use = (element) => {
  if (element.dataset.keyEvent) {
    element.dispatchEvent(new CustomEvent(element.dataset.keyEvent, { bubbles: true }));
  } else if (element.matches("input, select, textarea")) {
    element.focus();
    if (element.select) element.select();
  } else {
    element.click();
  }
};

const sheet = () => document.getElementById("keys-sheet");

const fillSheet = (dialog) => {
  const known = new Map();
  for (const element of holders()) {
    if (!known.has(element.dataset.key) && isShown(element)) {
      known.set(element.dataset.key, element.dataset.keyLabel || element.textContent.trim());
    }
  }
  const list = dialog.querySelector("[data-keys-list]");
  list.replaceChildren(
    ...[...known].map(([key, label]) => {
      const item = document.createElement("li");
      const name = document.createElement("span");
      const cap = document.createElement("kbd");
      name.textContent = label;
      cap.textContent = key;
      item.append(name, cap);
      return item;
    }),
  );
  dialog.querySelector("[data-keys-on]").checked = areOn();
};

const openSheet = () => {
  const dialog = sheet();
  if (!dialog || dialog.open) return;
  fillSheet(dialog);
  dialog.showModal();
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && isTyping(event.target)) {
    event.target.blur();
    return;
  }
  if (isTyping(event.target) || document.querySelector("dialog[open]") || !areOn()) return;
  const holder = holderOf(event.key);
  if (!holder) return;
  event.preventDefault();
  use(holder);
});

document.addEventListener("open-keys", openSheet);

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-open-keys]")) openSheet();
  const dialog = sheet();
  if (dialog && event.target === dialog) dialog.close(); // a click on the backdrop
});

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-keys-on]")) return;
  try {
    localStorage.setItem(storeKey, event.target.checked ? "on" : "off");
  } catch {
    // the choice cannot be kept
  }
});
