// Drop zone: files can be dropped, each is sent with progress, and the receipt opens at the end.
// Without scripts the same form posts by itself.
const zoneOf = (event) => event.target.closest?.("[data-drop-zone]");

for (const name of ["dragenter", "dragover"]) {
  document.addEventListener(name, (event) => {
    const zone = zoneOf(event);
    if (!zone) return;
    event.preventDefault();
    zone.dataset.over = "";
  });
}

document.addEventListener("dragleave", (event) => {
  const zone = zoneOf(event);
  if (zone && !zone.contains(event.relatedTarget)) delete zone.dataset.over;
});

document.addEventListener("drop", (event) => {
  const zone = zoneOf(event);
  if (!zone) return;
  event.preventDefault();
  delete zone.dataset.over;
  const field = zone.querySelector("input[type=file]");
  field.files = event.dataTransfer.files;
  field.dispatchEvent(new Event("change", { bubbles: true }));
});

const sizeOf = (bytes) => {
  const units = ["B", "kB", "MB", "GB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
};

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-drop-zone] input[type=file]")) return;
  const list = event.target.closest("[data-drop-zone]").querySelector("[data-file-list]");
  list.replaceChildren(
    ...[...event.target.files].map((file) => {
      const item = document.createElement("li");
      const name = document.createElement("span");
      const size = document.createElement("span");
      name.className = "clip";
      name.textContent = file.name;
      name.title = file.name;
      size.className = "note";
      size.textContent = sizeOf(file.size);
      item.append(name, size);
      return item;
    }),
  );
});

const fail = (form, words) => {
  const place = form.querySelector("[data-upload-error]");
  place.textContent = words;
  place.hidden = false;
  form.querySelector("[type=submit]").disabled = false;
};

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-upload]")) return;
  const request = new XMLHttpRequest();
  const bar = form.querySelector("[data-upload-progress]");
  const words = form.querySelector("[data-upload-words]");
  event.preventDefault();
  form.querySelector("[data-upload-error]").hidden = true;
  form.querySelector("[type=submit]").disabled = true;
  bar.hidden = false;
  request.upload.addEventListener("progress", (progress) => {
    if (!progress.lengthComputable) return;
    bar.max = progress.total;
    bar.value = progress.loaded;
    words.textContent =
      progress.loaded < progress.total
        ? `${sizeOf(progress.loaded)} of ${sizeOf(progress.total)} sent`
        : "Sent. Waiting until it is stored for good.";
  });
  request.addEventListener("load", () => {
    if (request.status < 400 && request.responseURL) {
      location.assign(request.responseURL);
      return;
    }
    // A refusal is the form again, with what is wrong in it.
    const answer = new DOMParser().parseFromString(request.responseText, "text/html");
    const content = document.getElementById("content");
    const fresh = answer.querySelector("form[data-upload]") && answer.getElementById("content");
    bar.hidden = true;
    words.textContent = "";
    if (fresh) {
      content.replaceChildren(...fresh.childNodes);
      content.focus();
    } else {
      fail(form, `The upload was not accepted (answer ${request.status}). Send it again: what is already stored is recognised.`);
    }
  });
  request.addEventListener("error", () => {
    bar.hidden = true;
    words.textContent = "";
    fail(form, "The connection broke before the upload was acknowledged. Send it again: what is already stored is recognised.");
  });
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "text/html");
  request.send(new FormData(form));
});
