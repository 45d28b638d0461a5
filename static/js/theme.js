// Applies the remembered colour scheme before the first paint, so it is a classic script in <head>.
(() => {
  const key = "evalsite-theme";
  const root = document.documentElement;
  root.dataset.js = "";

  const remembered = () => {
    try {
      return localStorage.getItem(key) || "auto";
    } catch {
      return "auto"; // storage may be forbidden
    }
  };

  const apply = (theme) => {
    root.dataset.theme = theme;
    for (const button of document.querySelectorAll("[data-set-theme]")) {
      button.setAttribute("aria-pressed", String(button.dataset.setTheme === theme));
    }
    document.dispatchEvent(new CustomEvent("theme-changed"));
  };

  apply(remembered());
  document.addEventListener("DOMContentLoaded", () => apply(remembered()));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-set-theme]");
    if (!button) return;
    try {
      localStorage.setItem(key, button.dataset.setTheme);
    } catch {
      // the choice then holds for this page only
    }
    apply(button.dataset.setTheme);
  });
})();
