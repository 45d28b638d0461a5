// Draws the figures of a page. A figure is JSON in a json_script element, made by the server with
// every label escaped. `meta: {"token": "accent"}` of a trace names its colour among the CSS tokens.
const drawn = new Set();
let library = null;

const load = (url) => {
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => reject(new Error("the chart library did not load")));
    document.head.append(script);
  });
  return library;
};

// A custom property that holds light-dark() has to pass through a real colour to be resolved.
const probe = document.createElement("span");
probe.hidden = true;
document.documentElement.append(probe);
const token = (name) => {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
};

const coloured = (trace) => {
  const name = trace.meta?.token;
  if (!name) return trace;
  const colour = token(name);
  return {
    ...trace,
    marker: { ...trace.marker, color: colour },
    ...(trace.type === "scatter" ? { line: { ...trace.line, color: colour } } : {}),
  };
};

const template = () => {
  const axis = {
    gridcolor: token("line"), linecolor: token("line-strong"), zerolinecolor: token("line"),
    tickcolor: token("line-strong"), automargin: true, fixedrange: true,
    title: { font: { size: 12 }, standoff: 8 },
  };
  const style = getComputedStyle(document.body);
  return {
    layout: {
      font: { family: style.fontFamily, size: 12, color: token("muted") },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      colorway: Array.from({ length: 12 }, (_, index) => token(`tool-${index}`)),
      margin: { l: 48, r: 12, t: 12, b: 40 }, bargap: 0.25,
      xaxis: axis, yaxis: axis, dragmode: false,
      hoverlabel: {
        bgcolor: token("surface"), bordercolor: token("line-strong"),
        font: { color: token("text"), family: style.fontFamily, size: 12 },
      },
      legend: { orientation: "h", yanchor: "bottom", y: 1.02, x: 0, font: { color: token("text") } },
    },
  };
};

const draw = async (place) => {
  const source = document.getElementById(place.dataset.chart);
  if (!source) return;
  const figure = JSON.parse(source.textContent);
  place.dataset.drawn = "";
  try {
    const plotly = await load(place.dataset.chartLibrary);
    await plotly.react(
      place,
      figure.data.map(coloured),
      { ...figure.layout, template: template(), autosize: true },
      { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false },
    );
    drawn.add(place);
  } catch (error) {
    place.textContent = "The chart could not be drawn. Its numbers are in the table below it.";
    throw error;
  }
};

const drawAll = () => {
  for (const place of document.querySelectorAll("[data-chart]:not([data-drawn])")) draw(place);
};

document.addEventListener("htmx:load", drawAll);
document.addEventListener("theme-changed", () => {
  for (const place of drawn) {
    if (place.isConnected) draw(place);
    else drawn.delete(place);
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  document.dispatchEvent(new CustomEvent("theme-changed")),
);
drawAll();
