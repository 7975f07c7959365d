// Why a row has its answer: its picture, and the parts that raise or lower it most.

const LARGEST = 8; // parts that are listed

function pictureOf(found) {
  if (!found.drawing) return null;
  const bytes = new TextEncoder().encode(found.drawing);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return element("img", { src: `data:image/svg+xml;base64,${btoa(text)}`, alt: `Row ${found.row}, red parts raise the answer, blue parts lower it` });
}

function bar(value, largest) {
  const length = largest ? Math.min(100, (100 * Math.abs(value)) / largest) : 0;
  return shape("svg", { viewBox: "0 0 200 16", preserveAspectRatio: "none", "aria-hidden": "true" },
    shape("line", { class: "frame", x1: 100, x2: 100, y1: 0, y2: 16 }),
    shape("rect", { class: value > 0 ? "up" : "down", x: value > 0 ? 100 : 100 - length, y: 3, width: length, height: 10 }));
}

const PLACES = { own: "of the row itself", around: "elsewhere", all: "everywhere" };

function whyParts(found) {
  const measured = found.parts.map((part) => ({ ...part, size: part.change ?? part.gradients })).filter((part) => Number.isFinite(part.size) && part.size !== 0);
  measured.sort((one, other) => Math.abs(other.size) - Math.abs(one.size));
  const first = measured.slice(0, LARGEST);
  const largest = first.length ? Math.abs(first[0].size) : 0;
  const lines = first.map((part) => element("tr", {},
    element("th", { scope: "row" }, own(part.part), PLACES[part.where] ? ` ${PLACES[part.where]}` : ""),
    element("td", { class: "number" }, `${part.size > 0 ? "+" : ""}${number(part.size, 3)}`),
    element("td", { class: "bar" }, bar(part.size, largest))));
  return element("table", {},
    element("caption", {}, "What each part adds: the answer minus the answer without it"),
    element("tbody", {}, lines));
}

const OF_GRAPHS = { edge: "edges", node: "nodes", column: "columns" }, OF_MOLECULES = { edge: "bonds", node: "atoms", column: "columns" };

function fidelityOf(found) {
  const kinds = found.parts.some((part) => /^(atom|bond) /.test(part.part)) ? OF_MOLECULES : OF_GRAPHS;
  const said = Object.entries(found.fidelity).filter(([, each]) => Number.isFinite(each.change)).map(([kind, each]) =>
    `Without the first ${kinds[kind]} the answer moves by ${number(each.change, 3)}, without as many at random by ${number(each.random, 3)}.`);
  return said.map((text) => element("p", { class: "note" }, text));
}

function whySection(found) {
  const what = found.class ? `log odds of ${found.class} before calibration` : found.target;
  return [
    element("h2", { tabindex: -1 }, "Why ", own(found.id), "? ", own(what), `: ${number(found.answer, 3)}`),
    element("div", { class: "why" }, element("div", {}, pictureOf(found)), element("div", {}, whyParts(found), fidelityOf(found))),
  ];
}
