// The editor of a contract: numbers beside its lines, marks on wrong ones, and a way to each.
const numbered = (editor) => {
  const area = editor.querySelector("textarea");
  const wrong = new Set(editor.dataset.wrong.split(" "));
  const gutter = document.createElement("ol");
  gutter.className = "editor-gutter";
  gutter.setAttribute("aria-hidden", "true");
  const original = area.value;
  const draw = () => {
    const n = area.value.split("\n").length;
    // Once the text is another one, the marks would stand beside other lines.
    if (area.value !== original) wrong.clear();
    const items = Array.from({ length: n }, (_, at) => {
      const item = document.createElement("li");
      item.textContent = String(at + 1);
      if (wrong.has(String(at + 1))) item.dataset.wrong = "";
      return item;
    });
    gutter.replaceChildren(...items);
    gutter.scrollTop = area.scrollTop;
  };
  area.addEventListener("input", draw);
  area.addEventListener("scroll", () => { gutter.scrollTop = area.scrollTop; });
  editor.prepend(gutter);
  editor.dataset.editor = "numbered";
  draw();
};

document.querySelectorAll("[data-editor]").forEach(numbered);

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-line]");
  const area = document.querySelector("[data-editor] textarea");
  if (!link || !area) return;
  event.preventDefault();
  const lines = area.value.split("\n");
  const line = Math.min(Number(link.dataset.line), lines.length);
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const end = start + lines[line - 1].length;
  const column = Math.max(Number(link.dataset.column) - 1, 0);
  area.focus();
  area.setSelectionRange(Math.min(start + column, end), end);
  const height = area.scrollHeight / lines.length;
  area.scrollTop = Math.max(0, (line - 6) * height);
  area.scrollIntoView({ block: "nearest" });
});
