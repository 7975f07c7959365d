// Charts with two axes, drawn as SVG in the width that there is, each with a table of its values.

function ticks(low, high, most) {
  if (!(high > low)) return [low];
  const rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= rough);
  const found = [];
  for (let place = Math.ceil(low / step); place * step <= high + step * 1e-9; place++) found.push(Number((place * step).toPrecision(12)));
  return found;
}

function widen([low, high]) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  if (low === high) return [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  const pad = (high - low) * 0.04;
  return [low - pad, high + pad];
}

// One chart. `layers` are lines, dots, points or rules with `x` and `y` in the units of the axes.
function plot({ width, height, x, y, layers, title }) {
  const margin = { left: 52, right: 12, top: 8, bottom: 40 };
  const [w, h] = [width - margin.left - margin.right, height - margin.top - margin.bottom];
  const px = (value) => margin.left + ((value - x.range[0]) / (x.range[1] - x.range[0])) * w;
  const py = (value) => margin.top + h - ((value - y.range[0]) / (y.range[1] - y.range[0])) * h;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": title });
  for (const value of ticks(...y.range, Math.max(2, h / 55))) {
    svg.append(
      shape("line", { class: "axis", x1: margin.left, x2: margin.left + w, y1: py(value), y2: py(value) }),
      shape("text", { x: margin.left - 8, y: py(value) + 4, "text-anchor": "end" }, number(value)),
    );
  }
  for (const value of ticks(...x.range, Math.max(2, w / 90))) {
    svg.append(shape("text", { x: px(value), y: margin.top + h + 18, "text-anchor": "middle" }, number(value)));
  }
  svg.append(
    shape("text", { x: margin.left + w, y: height - 4, "text-anchor": "end" }, x.label),
    shape("text", { x: 12, y: margin.top, transform: `rotate(-90 12 ${margin.top})`, "text-anchor": "end" }, y.label),
  );
  const path = (points) => points.map(([a, b], at) => `${at ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("");
  for (const layer of layers) {
    const points = (layer.points ?? []).filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b));
    if (layer.kind === "rule") svg.append(shape("path", { class: "rule", d: path(layer.points), fill: "none" }));
    if (layer.kind === "line") {
      svg.append(shape("path", { d: path(points), fill: "none", stroke: layer.color, "stroke-width": layer.thin ? 1 : 2, "stroke-linejoin": "round", opacity: layer.thin ? 0.8 : 1 }));
    }
    if (layer.kind === "bars") {
      for (const [a, low, high] of layer.points) svg.append(shape("line", { x1: px(a), x2: px(a), y1: py(low), y2: py(high), stroke: layer.color, opacity: 0.35 }));
    }
    if (layer.kind === "dots" || layer.kind === "marks") {
      const mark = layer.kind === "marks";
      for (const [a, b, size] of points) {
        svg.append(shape("circle", { cx: px(a).toFixed(1), cy: py(b).toFixed(1), r: size ?? (mark ? 5 : 2.2), fill: layer.color, "fill-opacity": mark ? 1 : 0.55, stroke: mark ? style("--ground") : "none", "stroke-width": 1.5 }));
      }
    }
  }
  return svg;
}

// A figure that is drawn again when its width or the theme changes. -> the figure, and a function that draws it
function figure({ title, note, draw, height = 280, legend: entries, rows, attributes = {} }) {
  const area = element("div", { class: "plot" }), key = element("div");
  const alternative = element("div", { class: "scroll" });
  const made = element("figure", attributes,
    element("figcaption", {}, title, note ? element("span", { class: "note" }, note) : null), area, key,
    element("details", {}, element("summary", {}, "As a table"), alternative));
  const update = () => {
    const width = Math.max(area.clientWidth, 260);
    area.replaceChildren(draw(width, Math.min(height, Math.round(width * 0.8))));
    key.replaceChildren(entries ? legend(entries()) : "");
    alternative.replaceChildren(rows());
  };
  new ResizeObserver(() => area.clientWidth && update()).observe(area);
  redraws.add(update);
  return { made, update };
}
