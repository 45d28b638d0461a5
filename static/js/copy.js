// Copies a link or a text: data-copy holds the text, or an address relative to this page.
const say = (words) => {
  const region = document.getElementById("live");
  if (!region) return;
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.textContent = words;
  region.replaceChildren(toast);
  setTimeout(() => toast.remove(), 2500);
};

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-link]");
  if (!button) return;
  event.preventDefault();
  const link = button.dataset.copyLink;
  const text = link === undefined ? button.dataset.copy : new URL(link, location.href).href;
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    // The clipboard needs a secure address. Following the link puts it in the address bar.
    if (link === undefined) say("This browser does not let the page copy");
    else location.assign(link);
  }
});
