// Panels of nodes, edges and graphs on canvases. Pointing at one lights up what belongs to it in the others.

class Panel {
  constructor(data, maps) {
    Object.assign(this, { data, maps, level: data.level, names: data.names, molecules: data.molecules });
    const packed = unpack(data.xy, "u2");
    this.size = packed.length / 2;
    this.x = Float32Array.from({ length: this.size }, (_, at) => packed[2 * at] / 65535);
    this.y = Float32Array.from({ length: this.size }, (_, at) => 1 - packed[2 * at + 1] / 65535);
    this.rows = unpack(data.rows, "i4");
    if (data.ends) this.ends = unpack(data.ends, "i4");
    if (data.owner) [this.owner, this.inside] = [unpack(data.owner, "i4"), unpack(data.inside, "i4")];
    this.colors = data.colors.map((color) => ({ ...color, values: unpack(color.values, color.kind === "category" ? "u1" : "f4") }));
    this.view = { scale: 1, x: 0, y: 0 };
    this.lit = [];
    this.buildGrid();
  }

  // Points by cell of a grid, so that the nearest one is found among few.
  buildGrid() {
    this.cells = Math.max(1, Math.min(256, Math.ceil(Math.sqrt(this.size / 4))));
    const cell = (at) => Math.min(this.cells - 1, Math.floor(this.y[at] * this.cells)) * this.cells + Math.min(this.cells - 1, Math.floor(this.x[at] * this.cells));
    this.start = new Int32Array(this.cells ** 2 + 1);
    for (let at = 0; at < this.size; at++) this.start[cell(at) + 1]++;
    for (let at = 0; at < this.cells ** 2; at++) this.start[at + 1] += this.start[at];
    const next = this.start.slice(0, -1);
    this.sorted = new Int32Array(this.size);
    for (let at = 0; at < this.size; at++) this.sorted[next[cell(at)]++] = at;
  }

  nearest(x, y, radius) {
    const clamp = (value) => Math.min(this.cells - 1, Math.max(0, Math.floor(value * this.cells)));
    let best = -1, closest = radius * radius;
    for (let row = clamp(y - radius); row <= clamp(y + radius); row++) {
      for (let column = clamp(x - radius); column <= clamp(x + radius); column++) {
        const cell = row * this.cells + column;
        for (let place = this.start[cell]; place < this.start[cell + 1]; place++) {
          const at = this.sorted[place], distance = (this.x[at] - x) ** 2 + (this.y[at] - y) ** 2;
          if (distance <= closest) [best, closest] = [at, distance];
        }
      }
    }
    return best;
  }

  pointOf(row) {
    if (!this.byRow) {
      this.byRow = new Map();
      this.rows.forEach((number, at) => this.byRow.set(number, at));
    }
    return this.byRow.get(row) ?? -1;
  }

  build() {
    this.base = element("canvas", { "aria-hidden": "true" });
    const keys = "arrow keys go to the next point, Enter keeps it, plus and minus zoom";
    this.top = element("canvas", {
      class: "top", tabindex: 0, role: "application", "aria-label": `${this.data.title}: ${whole(this.size)} points; ${keys}`, "data-panel": this.level,
      onpointermove: (event) => this.move(event), onpointerleave: () => this.maps.hover(null), onpointerdown: (event) => this.press(event),
      onpointerup: (event) => this.release(event), onpointercancel: () => { this.drag = null; }, onkeydown: (event) => this.key(event),
    });
    this.top.addEventListener("wheel", (event) => {
      if (document.activeElement !== this.top) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 1.25 : 0.8, ...this.place(event));
    }, { passive: false });
    const button = (text, label, act) => element("button", { type: "button", "aria-label": `${label} ${this.data.title.toLowerCase()}`, onclick: act }, text);
    this.stage = element("div", { class: "stage" }, this.base, this.top, element("div", { class: "zoom" },
      button("+", "Zoom in on", () => this.zoom(1.6)), button("−", "Zoom out of", () => this.zoom(1 / 1.6)), button("⤢", "Show all", () => this.reset())));
    this.key_ = element("div");
    const shown = this.size < this.data.total ? `${whole(this.size)} of ${whole(this.data.total)}` : whole(this.size);
    const chooser = this.colors.length ? labeled("Color by", select(this.colors.map((color) => color.name), this.colored ?? 0, (at) => {
      this.colored = at;
      this.draw();
    })) : null;
    this.made = element("figure", { "data-figure": `map-${this.level}` },
      element("div", { class: "panel-head" }, element("figcaption", {}, this.data.title, element("span", { class: "note" }, shown)), chooser), this.stage, this.key_);
    new ResizeObserver(() => this.resize()).observe(this.stage);
    redraws.add(() => this.draw());
    return this.made;
  }

  resize() {
    const width = this.stage.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    this.height = Math.min(width, 460);
    this.stage.style.height = `${this.height}px`;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    for (const canvas of [this.base, this.top]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.draw();
  }

  get side() {
    return Math.min(this.width, this.height) * this.view.scale;
  }

  screen(at) {
    return [this.width / 2 + (this.x[at] - 0.5 - this.view.x) * this.side, this.height / 2 + (this.y[at] - 0.5 - this.view.y) * this.side];
  }

  place(event) {
    const box = this.top.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    return [(px - this.width / 2) / this.side + 0.5 + this.view.x, (py - this.height / 2) / this.side + 0.5 + this.view.y];
  }

  get radius() {
    const base = this.size < 300 ? 4.5 : this.size < 3000 ? 3 : this.size < 15000 ? 2 : 1.4;
    return base * Math.min(2.5, Math.sqrt(this.view.scale));
  }

  // For each point the number of its color, and the colors.
  palette() {
    const color = this.colors[this.colored ?? 0], bins = new Uint8Array(this.size);
    if (!color) return { bins, colors: [CLASSES[theme()][0]] };
    if (color.kind === "category") {
      const two = color.names.length === 2 && color.name !== "part";
      const colors = color.name === "part" ? PARTS[theme()] : two ? TWO[theme()] : CLASSES[theme()];
      const all = [...colors.slice(0, 8)];
      while (all.length < 8) all.push(NONE[theme()]);
      all.push(NONE[theme()]);
      for (let at = 0; at < this.size; at++) bins[at] = color.values[at] < 8 ? color.values[at] : 8;
      return { bins, colors: all };
    }
    const stops = color.kind === "diverging" ? DIVERGING[theme()] : RAMP, steps = 32;
    const span = color.high - color.low || 1;
    for (let at = 0; at < this.size; at++) {
      const share = (color.values[at] - color.low) / span;
      bins[at] = Number.isFinite(share) ? Math.min(steps - 1, Math.max(0, Math.floor(share * steps))) : steps;
    }
    return { bins, colors: [...Array.from({ length: steps }, (_, step) => ramp(stops, step / (steps - 1))), NONE[theme()]] };
  }

  draw() {
    if (!this.width) return;
    const drawing = this.base.getContext("2d"), { bins, colors } = this.palette(), radius = this.radius;
    drawing.clearRect(0, 0, this.width, this.height);
    const count = new Int32Array(colors.length + 1);
    for (let at = 0; at < this.size; at++) count[bins[at] + 1]++;
    for (let bin = 0; bin < colors.length; bin++) count[bin + 1] += count[bin];
    const next = count.slice(), order = new Int32Array(this.size);
    for (let at = 0; at < this.size; at++) order[next[bins[at]]++] = at;
    // The rarest color comes last and is seen; points without a value come first.
    const layers = colors.map((_, bin) => bin).sort((a, b) => (a === colors.length - 1 ? -1 : b === colors.length - 1 ? 1 : count[b + 1] - count[b] - (count[a + 1] - count[a])));
    const round = radius >= 2.5;
    const side = this.side, left = this.width / 2 - (0.5 + this.view.x) * side, above = this.height / 2 - (0.5 + this.view.y) * side;
    for (const bin of layers) {
      drawing.fillStyle = colors[bin];
      drawing.globalAlpha = this.size > 3000 ? 0.75 : 0.9;
      for (let place = count[bin]; place < count[bin + 1]; place++) {
        const px = left + this.x[order[place]] * side, py = above + this.y[order[place]] * side;
        if (px < -5 || py < -5 || px > this.width + 5 || py > this.height + 5) continue;
        if (round) {
          drawing.beginPath();
          drawing.arc(px, py, radius, 0, 2 * Math.PI);
          drawing.fill();
        } else drawing.fillRect(px - radius, py - radius, 2 * radius, 2 * radius);
      }
    }
    drawing.globalAlpha = 1;
    this.explain(colors);
    this.light();
  }

  explain(colors) {
    const color = this.colors[this.colored ?? 0];
    if (!color) return this.key_.replaceChildren();
    if (color.kind === "category") return this.key_.replaceChildren(legend(color.names.map((name, at) => [name, colors[at]])));
    const bar = element("div", { class: "ramp", role: "img", "aria-label": `from ${number(color.low)} to ${number(color.high)}` });
    bar.style.background = `linear-gradient(to right, ${colors.slice(0, -1).join(",")})`;
    return this.key_.replaceChildren(element("div", { class: "ramp-line" }, number(color.low), bar, number(color.high)));
  }

  // Rings around what belongs to the chosen point, and lines to the neighbors of a node.
  light() {
    if (!this.width) return;
    const drawing = this.top.getContext("2d"), radius = Math.max(this.radius, 2.5);
    drawing.clearRect(0, 0, this.width, this.height);
    const ink = style("--ink"), ground = style("--ground"), accent = style("--accent");
    if (this.lines?.length && this.lines.length < 3000) {
      drawing.strokeStyle = ink;
      drawing.globalAlpha = 0.4;
      drawing.lineWidth = 1;
      drawing.beginPath();
      for (const [a, b] of this.lines) {
        drawing.moveTo(...this.screen(a));
        drawing.lineTo(...this.screen(b));
      }
      drawing.stroke();
      drawing.globalAlpha = 1;
    }
    const ring = (at, size, color) => {
      const [px, py] = this.screen(at);
      for (const [width, stroke] of [[4, ground], [2, color]]) {
        drawing.lineWidth = width;
        drawing.strokeStyle = stroke;
        drawing.beginPath();
        drawing.arc(px, py, size, 0, 2 * Math.PI);
        drawing.stroke();
      }
    };
    for (const at of this.lit) ring(at, radius + 2.5, ink);
    if (this.chosen >= 0) ring(this.chosen, radius + 5, accent);
  }

  at(event) {
    const reach = (event.pointerType === "touch" ? 22 : 12) / this.side;
    return this.nearest(...this.place(event), reach);
  }

  move(event) {
    if (this.drag) {
      const [dx, dy] = [event.clientX - this.drag.x, event.clientY - this.drag.y];
      this.drag.moved ||= Math.hypot(dx, dy) > 4;
      if (this.drag.moved && this.view.scale > 1) {
        this.view.x = this.drag.view.x - dx / this.side;
        this.view.y = this.drag.view.y - dy / this.side;
        this.draw();
      }
      return;
    }
    if (event.pointerType !== "touch") {
      const at = this.at(event);
      this.maps.hover(at < 0 ? null : [this, at]);
    }
  }

  press(event) {
    this.drag = { x: event.clientX, y: event.clientY, view: { ...this.view }, moved: false };
    if (this.view.scale > 1) this.top.setPointerCapture(event.pointerId);
  }

  release(event) {
    const wasDragged = this.drag?.moved;
    this.drag = null;
    if (wasDragged) return;
    const at = this.at(event);
    this.maps.pin(at < 0 ? null : [this, at]);
  }

  zoom(factor, x = 0.5 + this.view.x, y = 0.5 + this.view.y) {
    const scale = Math.min(64, Math.max(1, this.view.scale * factor)), change = scale / this.view.scale;
    this.view.x = x - 0.5 - (x - 0.5 - this.view.x) / change;
    this.view.y = y - 0.5 - (y - 0.5 - this.view.y) / change;
    this.view.scale = scale;
    if (scale === 1) [this.view.x, this.view.y] = [0, 0];
    this.stage.style.touchAction = this.top.style.touchAction = scale > 1 ? "none" : "pan-y";
    this.draw();
  }

  reset() {
    this.zoom(1e-9);
  }

  key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (steps[event.key]) this.step(...steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.maps.pin(this.maps.pinned ? null : this.maps.current);
    else if (event.key === "Escape") this.maps.pin(null);
    else if (event.key === "+" || event.key === "=") this.zoom(1.6);
    else if (event.key === "-") this.zoom(1 / 1.6);
    else if (event.key === "0") this.reset();
    else return;
    event.preventDefault();
  }

  // To the nearest point within 45 degrees of a direction; from nowhere, to the one in the middle.
  step(dx, dy) {
    if (!this.size) return;
    const from = this.chosen >= 0 ? this.chosen : -1;
    const [x, y] = from < 0 ? [0.5 + this.view.x, 0.5 + this.view.y] : [this.x[from], this.y[from]];
    let best = -1, closest = Infinity;
    for (let at = 0; at < this.size; at++) {
      const [ax, ay] = [this.x[at] - x, this.y[at] - y], along = ax * dx + ay * dy, across = Math.abs(ax * dy) + Math.abs(ay * dx);
      const distance = ax * ax + ay * ay;
      if (at !== from && distance < closest && (from < 0 || (along > 0 && along >= across))) [best, closest] = [at, distance];
    }
    if (best < 0) return;
    this.show(best);
    this.maps.pinned = null;
    this.maps.hover([this, best]);
  }

  // Moves the view so that a point is in it.
  show(at) {
    const [px, py] = this.screen(at);
    if (px >= 0 && py >= 0 && px <= this.width && py <= this.height) return;
    [this.view.x, this.view.y] = [this.x[at] - 0.5, this.y[at] - 0.5];
    this.draw();
  }
}

// For each number the places where it stands in a list.
function invert(list, size) {
  const start = new Int32Array(size + 1);
  for (const value of list) if (value >= 0) start[value + 1]++;
  for (let at = 0; at < size; at++) start[at + 1] += start[at];
  const next = start.slice(0, -1), found = new Int32Array(start[size]);
  list.forEach((value, place) => {
    if (value >= 0) found[next[value]++] = place;
  });
  return (at) => found.subarray(start[at], start[at + 1]);
}

class Maps {
  constructor({ panels, note, method }) {
    Object.assign(this, { note, method });
    this.panels = panels.map((data) => new Panel(data, this));
    [this.nodes, this.edges, this.graphs] = ["node", "edge", "graph"].map((level) => this.panel(level));
    this.slots = invert(this.edges.ends, this.nodes.size);
    if (this.graphs) [this.nodesOf, this.edgesOf] = [this.nodes, this.edges].map((panel) => invert(panel.owner, this.graphs.size));
    this.inherit();
  }

  panel(level) {
    return this.panels.find((panel) => panel.level === level);
  }

  // A level without predictions takes colors from one that has some: a bond from its molecule, an account from its payments.
  inherit() {
    const predicted = (panel) => panel.colors.some((color) => color.name.startsWith("label") || color.name.startsWith("prediction"));
    const numbers = (color, size, value) => ({ ...color, values: Float32Array.from({ length: size }, (_, at) => value(color, at)) });
    for (const panel of [this.nodes, this.edges]) {
      if (predicted(panel)) continue;
      const other = panel === this.nodes ? this.edges : this.nodes;
      if (this.graphs && predicted(this.graphs)) {
        const given = this.graphs.colors.filter((color) => /^(label|prediction|error|probability)/.test(color.name)).map((color) => {
          const name = `${color.name} of its ${this.graphs.molecules ? "molecule" : "graph"}`;
          const values = color.values.constructor.from({ length: panel.size }, (_, at) => color.values[panel.owner[at]]);
          return { ...color, name, values };
        });
        panel.colors.unshift(...given);
      } else if (panel === this.edges && predicted(other)) {
        const given = other.colors.filter((color) => color.kind === "category" && color.name !== "part").map((color) => {
          const names = color.names.length < 8 ? [...color.names, "its ends differ"] : color.names;
          const differ = color.names.length < 8 ? color.names.length : 255;
          const values = Uint8Array.from({ length: panel.size }, (_, at) => {
            const [a, b] = [panel.ends[2 * at], panel.ends[2 * at + 1]].map((node) => color.values[node]);
            return a === b ? a : differ;
          });
          return { ...color, name: `${color.name} of both ends`, names, values };
        });
        panel.colors.unshift(...given);
      } else if (panel === this.nodes && predicted(other)) {
        const given = other.colors.filter((color) => /^(probability|prediction)/.test(color.name) && color.kind !== "category").map((color) =>
          ({ ...numbers(color, panel.size, (one, at) => this.slots(at).reduce((high, slot) => Math.max(high, one.values[slot >> 1]), -Infinity)), name: `highest ${color.name} of its edges` }));
        panel.colors.unshift(...given);
      }
    }
  }

  build(place) {
    this.card = element("div", { class: "chosen-point", "aria-live": "polite", "data-figure": "chosen" });
    place.append(
      element("p", { class: "note" }, this.note, " Point at one, or go there with the arrow keys: what belongs to it lights up in the other panels. A click or Enter keeps it."),
      element("div", { class: "maps" }, (this.graphs ? [this.graphs, this.nodes, this.edges] : [this.nodes, this.edges]).map((panel) => panel.build())),
      this.card, this.finder());
    this.describe();
  }

  name(panel, at) {
    if (panel.names) return panel.names[at];
    if (panel === this.edges && !panel.owner) return `${this.nodes.names[panel.ends[2 * at]]} – ${this.nodes.names[panel.ends[2 * at + 1]]}`;
    return `${panel.data.title.slice(0, -1)} ${panel.inside[at] + 1}`;
  }

  hover(point) {
    if (this.pinned) return;
    this.current = point;
    this.light();
  }

  pin(point) {
    this.pinned = point;
    this.current = point;
    this.light();
  }

  choose(level, at, scroll) {
    const panel = this.panel(level);
    panel.show(at);
    this.pin([panel, at]);
    if (scroll) {
      panel.made.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
      panel.top.focus({ preventScroll: true });
    }
  }

  light() {
    const { nodes, edges, graphs } = this;
    for (const panel of this.panels) Object.assign(panel, { lit: [], chosen: -1, lines: [] });
    if (this.current) {
      const [panel, at] = this.current;
      panel.chosen = at;
      if (panel === nodes) {
        const around = [...new Set(Array.from(this.slots(at), (slot) => slot >> 1))];
        edges.lit = around;
        nodes.lines = around.map((edge) => [edges.ends[2 * edge], edges.ends[2 * edge + 1]]);
        nodes.lit = [...new Set(nodes.lines.flat())].filter((node) => node !== at);
      }
      if (panel === edges) {
        nodes.lit = [...new Set([edges.ends[2 * at], edges.ends[2 * at + 1]])];
        nodes.lines = [[edges.ends[2 * at], edges.ends[2 * at + 1]]];
      }
      if (panel === graphs) [nodes.lit, edges.lit] = [this.nodesOf(at), this.edgesOf(at)];
      else if (graphs) graphs.lit = [panel.owner[at]];
    }
    for (const panel of this.panels) panel.light();
    this.describe();
  }

  describe() {
    this.card.classList.toggle("empty", !this.current);
    if (!this.current) {
      this.card.replaceChildren(element("p", { class: "note" }, "No point is chosen."));
      return;
    }
    const [panel, at] = this.current, rows = [];
    if (panel.owner && this.graphs) rows.push([this.graphs.molecules ? "molecule" : "graph", own(this.name(this.graphs, panel.owner[at]))]);
    if (panel === this.nodes) rows.push(["edges", whole(this.edges.lit.length)], ["neighbors", own(list(panel.lit.map((node) => this.name(panel, node))))]);
    if (panel === this.edges && panel.owner) rows.push(["ends", own(list(this.nodes.lit.map((node) => this.name(this.nodes, node))))]);
    for (const color of panel.colors.slice(0, 10)) rows.push([color.name, value(color, at)]);
    if (panel.rows[at] >= 0 && panel.rows.length) rows.push(["row of the table", whole(panel.rows[at] + 1)]);
    const graph = panel === this.graphs ? at : panel.owner?.[at];
    const molecule = this.graphs?.molecules?.[graph];
    const lit = panel === this.nodes ? { atoms: [panel.inside?.[at]] } : panel === this.edges ? { bonds: [panel.inside?.[at]] } : {};
    this.card.replaceChildren(
      element("div", {}, element("h3", {}, panel.inside ? "" : `${panel.data.title.slice(0, -1)} `, own(this.name(panel, at)), this.pinned ? " (kept)" : ""),
        element("dl", {}, rows.map(([name, text]) => [element("dt", {}, own(name)), element("dd", {}, text)]))),
      molecule ? drawMolecule(molecule, lit) : this.graphs?.molecules && graph !== undefined ? element("p", { class: "note" }, "not drawn") : "");
  }

  // A search by name, which is also the map as a table.
  finder() {
    const area = element("div", { class: "scroll" });
    let panel = this.graphs ?? this.nodes;
    const input = element("input", { type: "search", placeholder: "part of a name", "data-control": "find", oninput: () => show() });
    const show = () => {
      const wanted = input.value.toLowerCase(), found = [];
      for (let at = 0; at < panel.size && found.length < 50; at++) if (!wanted || String(this.name(panel, at)).toLowerCase().includes(wanted)) found.push(at);
      const chosen = panel;
      const colors = panel.colors.slice(0, 6);
      const rows = found.map((at) => [element("button", { type: "button", onclick: () => this.choose(chosen.level, at, true) }, own(this.name(chosen, at))), ...colors.map((color) => value(color, at))]);
      area.replaceChildren(table(["", ...colors.map((color) => color.name)], rows));
    };
    const details = element("details", { class: "search" }, element("summary", {}, "Find points, or read them as a table"),
      element("div", { class: "controls" }, labeled("Points of", select(this.panels.map((one) => one.data.title), this.panels.indexOf(panel), (at) => {
        panel = this.panels[at];
        show();
      })), labeled("Name", input)), area);
    details.addEventListener("toggle", () => details.open && show());
    return details;
  }
}

function list(names) {
  const shown = names.slice(0, 12).join(", ");
  return names.length > 12 ? `${shown} and ${whole(names.length - 12)} more` : shown || "none";
}

function value(color, at) {
  if (color.kind === "category") return own(color.names[color.values[at]] ?? "–");
  return number(color.values[at]);
}
