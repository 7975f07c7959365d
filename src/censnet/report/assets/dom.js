// Elements, numbers, packed arrays and colors.

const SVG = "http://www.w3.org/2000/svg";
const content = JSON.parse(document.getElementById("content").textContent);

// An element with attributes and children; text is set as text, never as HTML.
function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function shape(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

// Text of the user's, in its own direction of writing.
function own(text) {
  return element("bdi", {}, String(text));
}

function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-4) return value.toExponential(2);
  if (size >= 1e4) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(digits)));
}

function whole(value) {
  return Math.round(value).toLocaleString("en-US");
}

function percent(value) {
  return Number.isFinite(value) ? `${number(100 * value, 3)} %` : "–";
}

const KINDS = { f4: Float32Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array };

function unpack(text, kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new KINDS[kind](bytes.buffer);
}

function table(head, rows, attributes = {}) {
  const cell = (value) =>
    typeof value === "number" ? element("td", { class: "number" }, number(value)) : element("td", {}, value ?? "");
  return element(
    "table", attributes,
    element("thead", {}, element("tr", {}, head.map((name, at) =>
      element("th", { scope: "col", class: at && rows.some((row) => typeof row[at] === "number") ? "number" : null }, name)))),
    element("tbody", {}, rows.map((row) =>
      element("tr", {}, element("th", { scope: "row" }, row[0]), row.slice(1).map(cell)))),
  );
}

function labeled(text, control) {
  return element("label", { class: "control" }, text, control);
}

function select(names, chosen, change) {
  const made = element("select", { onchange: () => change(made.selectedIndex) },
    names.map((name, place) => element("option", { selected: place === chosen }, name)));
  return made;
}

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;

// Colors that people with any color vision tell apart (Okabe and Ito); gray is what is not in question.
const CLASSES = {
  light: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#3c3c3c", "#9aa5b1"],
  dark: ["#4aa3df", "#e69f00", "#19b88b", "#d990b9", "#8fd0f5", "#f0752b", "#f0e442", "#66727f"],
};
const TWO = { light: ["#8fa0b3", "#d55e00"], dark: ["#62738a", "#ff8a3d"] };
const PARTS = { light: ["#9aa5b1", "#e69f00", "#0072b2", "#009e73"], dark: ["#66727f", "#e69f00", "#4aa3df", "#19b88b"] };
const NONE = { light: "#dde1e6", dark: "#333c47" };
const RAMP = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"];
const DIVERGING = { light: ["#0059a0", "#6fa8d6", "#c9ced6", "#eb9a63", "#c04400"], dark: ["#55aef2", "#3c6f99", "#4a535e", "#b26a38", "#ff8a3d"] };
const PART_COLORS = { train: 0, validation: 1, test: 2, all: 3 };
const PART_NAMES = { train: "train", validation: "validation", test: "test", all: "these data" };

const theme = () => (isDark() ? "dark" : "light");
const partColor = (part) => PARTS[theme()][PART_COLORS[part]];

function ramp(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const rgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const [first, second] = [rgb(stops[low]), rgb(stops[low + 1])];
  return `rgb(${first.map((value, at) => Math.round(value + (second[at] - value) * (place - low))).join(",")})`;
}

const swatch = (color) => shape("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, shape("rect", { width: 12, height: 12, rx: 2, fill: color }));

function legend(entries) {
  return element("ul", { class: "legend" }, entries.map(([name, color]) => element("li", {}, swatch(color), own(name))));
}

// Everything that has to be drawn again when the theme or the width changes.
const redraws = new Set();
function redrawAll() {
  for (const draw of redraws) draw();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
addEventListener("beforeprint", redrawAll);
addEventListener("afterprint", redrawAll);
