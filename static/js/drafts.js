// What is written on a deciding page is kept on the server a moment after the last key.
const PAUSE = 700;
const form = document.querySelector("[data-deciding][data-draft-url]");
let timer = 0;
let last = "";

const state = (words) => {
  const place = document.querySelector("[data-draft-state]");
  if (place) place.textContent = words;
};

const written = () => new URLSearchParams(new FormData(form));

const keep = async ({ leaving = false } = {}) => {
  clearTimeout(timer);
  if (!form || form.dataset.sent) return;
  const body = written();
  if (String(body) === last) return;
  last = String(body);
  try {
    const answer = await fetch(form.dataset.draftUrl, {
      method: "POST",
      body,
      headers: { Accept: "application/json", "X-CSRFToken": body.get("csrfmiddlewaretoken") },
      keepalive: leaving,
      credentials: "same-origin",
    });
    const said = answer.headers.get("Content-Type")?.includes("json") ? await answer.json() : {};
    state(said.words || (answer.ok ? "Draft kept" : "The draft is not kept"));
  } catch {
    last = "";
    state("The draft is not kept: the site does not answer");
  }
};

if (form) {
  last = String(written());
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(keep, PAUSE);
  });
  form.addEventListener("change", () => {
    clearTimeout(timer);
    timer = setTimeout(keep, PAUSE);
  });
  addEventListener("pagehide", () => keep({ leaving: true }));
}
