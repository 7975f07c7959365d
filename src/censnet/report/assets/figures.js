// Predictions of one target: confusion and thresholds of classes, parity of numbers, calibration; learning curves.

const MAIN_PARTS = ["all", "test", "validation", "train"];
const mainPart = (parts) => MAIN_PARTS.find((part) => parts[part]);

// The number of sorted values that are at least `limit`; both as 32-bit floats, as the values are stored.
function countFrom(sorted, limit) {
  let [low, high] = [0, sorted.length];
  const asked = Math.fround(limit);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < asked) low = middle + 1;
    else high = middle;
  }
  return sorted.length - low;
}

class Curve {
  constructor({ positive, negative, rows, sampled }) {
    this.positive = unpack(positive, "f4");
    this.negative = unpack(negative, "f4");
    this.scale = sampled ? rows / (this.positive.length + this.negative.length) : 1;
    this.rows = rows;
    this.sampled = sampled;
  }

  at(threshold) {
    const [hit, wrong] = [countFrom(this.positive, threshold), countFrom(this.negative, threshold)];
    const flagged = hit + wrong, missed = this.positive.length - hit;
    return {
      threshold, hit, wrong, missed, flagged,
      precision: flagged ? hit / flagged : NaN,
      recall: this.positive.length ? hit / this.positive.length : NaN,
      fallout: this.negative.length ? wrong / this.negative.length : NaN,
    };
  }

  // All thresholds that matter for a picture: quantiles of both kinds of rows, the highest ones in full.
  get thresholds() {
    if (this.known) return this.known;
    const found = new Set();
    for (const side of [this.positive, this.negative]) {
      const most = 400;
      for (let at = 0; at < Math.min(side.length, most); at++) {
        found.add(side[Math.round((at / Math.max(1, Math.min(side.length, most) - 1)) * (side.length - 1))]);
        if (at < 60) found.add(side[side.length - 1 - at]);
      }
    }
    found.delete(undefined);
    this.known = [...found].sort((a, b) => b - a);
    return this.known;
  }

  // The threshold that flags about so many rows.
  flagging(count) {
    let [low, high] = [0, this.thresholds.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at(this.thresholds[middle]).flagged < count) low = middle + 1;
      else high = middle;
    }
    return this.thresholds[low];
  }
}

function predictions(place) {
  const targets = content.targets;
  const area = element("div"), name = (target) => `${target.level}: ${target.column}`;
  const show = (at) => {
    area.replaceChildren(target(targets[at]));
    document.dispatchEvent(new CustomEvent("target", { detail: at }));
  };
  if (targets.length > 1) {
    place.append(element("div", { class: "controls" }, labeled("Target", select(targets.map(name), 0, show))));
    if (content.unshown) place.append(element("p", { class: "note" }, `Figures are of the first ${targets.length} targets; ${whole(content.unshown)} more are in the scores.`));
  }
  place.append(area);
  show(0);
}

function target(found) {
  const parts = MAIN_PARTS.filter((part) => found.parts[part]);
  if (!parts.length) return element("p", { class: "note" }, "No row has both a label and a prediction.");
  let part = parts[0];
  const area = element("div");
  const show = () => area.replaceChildren(found.parity ? numbers(found, part) : classes(found, part));
  show();
  const names = parts.map((one) => `${PART_NAMES[one]} (${whole(found.parts[one])} rows)`);
  const chooser = labeled("Rows of", select(names, 0, (at) => {
    part = parts[at];
    show();
  }));
  return element("div", {}, element("div", { class: "controls" }, chooser), area);
}

function classes(found, part) {
  const figures = [confusion(found.confusion[part], part), found.reliability?.[part] ? reliability(found, part) : null];
  const curves = found.curves?.length ? thresholds(found, part) : [];
  // Of two classes the threshold is what one decides; of several, who is taken for whom comes first.
  return element("div", { class: "grid" }, found.kind === "binary" ? [curves, figures] : [figures, curves]);
}

function confusion({ names, counts }, part) {
  const numbered = names.length > 2 && names.some((name) => name.length > 4);  // a column has no room for long names
  const called = (name, at) => [numbered ? `${at} ` : "", own(name)];
  const body = counts.map((row, at) => {
    const total = row.reduce((sum, value) => sum + value, 0);
    return element("tr", {}, element("th", { scope: "row", title: names[at] }, called(names[at], at)), row.map((value, column) => {
      const share = total ? value / total : 0;
      const cell = element("td", { class: `${at === column ? "right" : ""} ${value ? "" : "dim"}`.trim() || null, title: `${percent(share)} of ${names[at]}` }, whole(value));
      cell.style.background = `rgba(${style("--shade")}, ${value ? 0.06 + 0.5 * share : 0})`;
      return cell;
    }));
  });
  const head = element("tr", {}, element("td", {}, "label ↓  predicted →"), names.map((name, at) => element("th", { scope: "col", title: name }, called(name, at))));
  return element("figure", { "data-figure": "confusion", class: names.length > 4 ? "wide" : null },
    element("figcaption", {}, `Confusion, ${PART_NAMES[part]}`, element("span", { class: "note" }, "Rows by label and predicted class; shaded by the share of each label; the outlined cells are right.")),
    element("div", { class: "scroll" }, element("table", { class: "confusion" }, element("thead", {}, head), element("tbody", {}, body))));
}

// ROC, precision and recall, and the counts at a threshold, which is chosen on one part and read on all.
function thresholds(found, part) {
  const curves = found.curves.map((one) => Object.fromEntries(Object.entries(one.parts).map(([name, packed]) => [name, new Curve(packed)])));
  let current = 0, threshold = 1 / (found.kind === "binary" ? 2 : found.classes.length);
  if (found.kind === "binary") threshold = found.threshold;
  const parts = () => Object.keys(curves[current]);
  const chooser = () => (curves[current].validation ? "validation" : parts()[0]);
  const curve = () => curves[current][chooser()];

  const slider = element("input", { type: "range", min: 0, max: 1000, step: 1, "data-control": "slider", oninput: () => {
    const most = curve().at(-Infinity).flagged;
    set(curve().flagging(Math.max(1, Math.round(Math.exp(Math.log(most) * (slider.value / 1000))))), slider);
  } });
  const typed = element("input", { type: "number", min: 0, max: 1, step: "any", "data-control": "threshold", onchange: () => set(Number(typed.value), typed) });
  const recall = element("input", { type: "number", min: 0, max: 100, step: "any", placeholder: "90", "data-control": "recall", onchange: () => {
    const wanted = Number(recall.value) / 100;
    const enough = curve().thresholds.find((one) => curve().at(one).recall >= wanted);
    if (recall.value && enough !== undefined) set(enough, recall);
  } });
  const costs = [1, 20].map((value, at) => element("input", { type: "number", min: 0, step: "any", value, "data-control": at ? "cost-missed" : "cost-flagged" }));
  const cheapest = element("button", { type: "button", "data-control": "cheapest", onclick: () => {
    const cost = (one) => Number(costs[0].value) * one.wrong + Number(costs[1].value) * one.missed;
    const all = [...curve().thresholds, Infinity].map((one) => curve().at(one));
    const best = all.reduce((low, one) => (cost(one) < cost(low) ? one : low));
    set(best.threshold, cheapest);
  } }, "Least cost");

  const counts = element("div", { class: "scroll", "aria-live": "polite" });
  const series = (pick) => parts().map((name) => ({ kind: "line", color: partColor(name), thin: name !== chosenPart(), points: [pick(curves[current][name].at(Infinity)), ...curves[current][name].thresholds.map((one) => pick(curves[current][name].at(one)))] }));
  const marks = (pick) => parts().map((name) => ({ kind: "marks", color: partColor(name), points: [pick(curves[current][name].at(threshold))] }));
  const chosenPart = () => (curves[current][part] ? part : parts()[0]);
  const share = { range: [0, 1.0], label: "" };
  const entries = () => parts().map((name) => [PART_NAMES[name], partColor(name)]);
  const steps = () => {
    const rows = [];
    for (const name of parts()) {
      const all = curves[current][name].thresholds;
      const shown = all.filter((_, at) => at % Math.max(1, Math.floor(all.length / 20)) === 0);
      for (const one of shown) {
        const found = curves[current][name].at(one);
        rows.push([PART_NAMES[name], one, found.precision, found.recall, found.fallout]);
      }
    }
    return table(["rows of", "threshold", "precision", "recall", "false positive rate"], rows);
  };
  const roc = figure({ title: "ROC", attributes: { "data-figure": "roc" }, legend: entries, rows: steps, draw: (width, height) => plot({
    width, height, title: "Receiver operating characteristic", x: { ...share, label: "false positive rate" }, y: { ...share, label: "recall" },
    layers: [{ kind: "rule", points: [[0, 0], [1, 1]] }, ...series((one) => [one.fallout, one.recall]), ...marks((one) => [one.fallout, one.recall])],
  }) });
  const pr = figure({ title: "Precision and recall", attributes: { "data-figure": "pr" }, legend: entries, rows: steps, draw: (width, height) => {
    const base = curves[current][chosenPart()];
    const level = base.positive.length / Math.max(1, base.positive.length + base.negative.length);
    return plot({
      width, height, title: "Precision by recall", x: { ...share, label: "recall" }, y: { ...share, label: "precision" },
      layers: [{ kind: "rule", points: [[0, level], [1, level]] }, ...series((one) => [one.recall, one.precision]), ...marks((one) => [one.recall, one.precision])],
    });
  } });

  function set(value, from) {
    threshold = Number.isFinite(value) ? value : 1.0001;
    if (from !== typed) typed.value = spell(threshold);
    if (from !== slider) {
      const most = curve().at(-Infinity).flagged, flagged = Math.max(1, curve().at(threshold).flagged);
      slider.value = Math.round((1000 * Math.log(flagged)) / Math.max(1e-9, Math.log(most)));
    }
    slider.setAttribute("aria-valuetext", `threshold ${number(threshold)}`);
    const columns = parts().map((name) => {
      const one = curves[current][name].at(threshold), scale = curves[current][name].scale;
      const about = (value) => (scale > 1 ? `≈ ${whole(value * scale)}` : whole(value));
      return [about(one.flagged), about(one.hit), about(one.wrong), about(one.missed), percent(one.precision), percent(one.recall)];
    });
    const names = ["flagged", "of these right", "false alarms", "missed", "precision", "recall"];
    counts.replaceChildren(table(["", ...parts().map((name) => PART_NAMES[name])], names.map((name, at) => [name, ...columns.map((column) => column[at])]), { "data-figure": "counts" }));
    roc.update();
    pr.update();
  }
  const spell = (value) => String(Number(value.toPrecision(6)));

  const which = found.kind === "binary" ? null : labeled("Class", select(found.curves.map((one) => one.name), 0, (at) => {
    current = at;
    set(threshold, null);
  }));
  const positive = found.kind === "binary" ? found.curves[0].name : null;
  const box = element("div", { class: "threshold" },
    element("h3", {}, "Threshold", positive ? [" for ", own(positive)] : ""),
    element("p", { class: "note" }, `A row is flagged from this probability on. Choose it on ${PART_NAMES[chooser()]} rows, and read off the others what it will do.`,
      found.rule ? ` The run's own is ${number(found.threshold)} (${found.rule} on validation rows): its predictions and the confusion table are by that.` : found.kind === "binary" ? " The confusion table is by 0.5." : ""),
    element("label", { class: "control" }, `fewer rows flagged ← → more`, slider),
    counts,
    element("div", { class: "controls" }, which, labeled("Threshold", typed), labeled("Wanted recall, %", recall),
      labeled("Cost of a false alarm", costs[0]), labeled("Cost of a missed row", costs[1]), cheapest));
  set(threshold, null);
  return [box, roc.made, pr.made];
}

function reliability(found, part) {
  const bins = found.reliability[part];
  const what = found.kind === "binary" ? `probability of ${found.curves[0].name}` : "probability of the predicted class";
  const top = Math.max(0.05, ...bins.map((bin) => Math.max(bin.predicted, bin.observed)));
  const range = found.kind === "binary" && top < 0.6 ? [0, top * 1.08] : [0, 1];
  return figure({
    title: `Calibration, ${PART_NAMES[part]}`, attributes: { "data-figure": "reliability" },
    note: `Bins of equally many rows, by the ${what}. On the dotted line it means what it says.`,
    rows: () => table(["rows", "mean probability", "observed share"], bins.map((bin) => [whole(bin.rows), bin.predicted, bin.observed])),
    draw: (width, height) => plot({
      width, height, title: "Observed share by predicted probability", x: { range, label: what.length > 40 ? "probability" : what }, y: { range, label: "observed share" },
      layers: [{ kind: "rule", points: [[range[0], range[0]], [range[1], range[1]]] },
        { kind: "line", color: partColor(part), points: bins.map((bin) => [bin.predicted, bin.observed]) },
        { kind: "marks", color: partColor(part), points: bins.map((bin) => [bin.predicted, bin.observed, 4]) }],
    }),
  }).made;
}

function numbers(found, part) {
  const parity = found.parity[part];
  const [labels, predicted] = [unpack(parity.label, "f4"), unpack(parity.predicted, "f4")];
  const points = Array.from(labels, (label, at) => [label, predicted[at]]);
  const [low, high] = widen([labels, predicted].reduce(([low, high], side) => side.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [low, high]), [Infinity, -Infinity]));
  const range = [low, high];
  const shown = labels.length < found.parts[part] ? ` A sample of ${whole(labels.length)} of ${whole(found.parts[part])} rows.` : "";
  const layers = () => [{ kind: "rule", points: [[low, low], [high, high]] }];
  const bars = parity.interval_low ? [unpack(parity.interval_low, "f4"), unpack(parity.interval_high, "f4")] : null;
  const fifths = () => table(["labels", "rows", "mean prediction", "mean absolute error"],
    parity.fifths.map((one) => [`${number(one.low)} to ${number(one.high)}`, whole(one.rows), one.predicted, one.error]));
  const errors = points.map(([label, value]) => value - label);
  // The axis of predictions holds nearly all intervals; what is longer ends at its edge.
  const end = (side, share) => Float64Array.from(side).sort()[Math.round(share * (side.length - 1))];
  const across = bars ? widen([Math.min(low, end(bars[0], 0.02)), Math.max(high, end(bars[1], 0.98))]) : range;
  const inside = (value) => Math.min(across[1], Math.max(across[0], value));
  const made = element("div", { class: "grid" },
    figure({
      title: `Prediction by label, ${PART_NAMES[part]}`, attributes: { "data-figure": "parity" }, note: `On the dotted line a prediction is right.${bars ? " Bars are intervals." : ""}${shown}`, height: 360, rows: fifths,
      draw: (width, height) => plot({
        width, height, title: "Prediction by label", x: { range, label: "label" }, y: { range: across, label: "prediction" },
        layers: [...layers(), ...(bars ? [{ kind: "bars", color: partColor(part), points: points.map(([label], at) => [label, inside(bars[0][at]), inside(bars[1][at])]) }] : []), { kind: "dots", color: partColor(part), points }],
      }),
    }).made,
    histogram(errors, part));
  if (parity.coverage !== undefined) {
    made.append(element("p", { class: "note", "data-figure": "coverage" }, `${percent(parity.coverage)} of labels lie in their interval of ${percent(parity.wanted)}, whose mean width is ${number(parity.width)}.`));
  }
  return made;
}

function histogram(errors, part) {
  const sorted = Float64Array.from(errors).sort();
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const limit = Math.max(Math.abs(at(0.01)), Math.abs(at(0.99))) || 1, bins = 30;
  const counts = new Array(bins).fill(0);
  for (const error of errors) {
    const bin = Math.floor(((error + limit) / (2 * limit)) * bins);
    counts[Math.min(bins - 1, Math.max(0, bin))]++;
  }
  const top = Math.max(...counts);
  return figure({
    title: `Errors, ${PART_NAMES[part]}`, attributes: { "data-figure": "errors" }, note: "Prediction less label; the outermost bins hold all beyond.",
    rows: () => table(["share of rows", "error at most"], [0.05, 0.25, 0.5, 0.75, 0.95].map((share) => [percent(share), at(share)])),
    height: 360,
    draw: (width, height) => {
      const svg = plot({ width, height, title: "Distribution of errors", x: { range: [-limit, limit], label: "error" }, y: { range: [0, top * 1.05], label: "rows" }, layers: [] });
      const [w, h] = [width - 64, height - 48];
      counts.forEach((count, bin) => {
        const size = (count / (top * 1.05)) * h;
        svg.append(shape("rect", { x: 52 + (bin / bins) * w + 0.5, y: 8 + h - size, width: w / bins - 1, height: size, fill: partColor(part) }));
      });
      svg.append(shape("line", { class: "rule", x1: 52 + w / 2, x2: 52 + w / 2, y1: 8, y2: 8 + h }));
      return svg;
    },
  }).made;
}

function learning(place) {
  const { series, names, monitor, best } = content.history;
  const losses = names.filter((name) => name === "loss" || name === "validation_loss");
  const others = names.filter((name) => !losses.includes(name));
  const colors = { loss: "train", validation_loss: "validation" };
  const said = { loss: "training loss", validation_loss: "validation loss" };
  const chart = (title, chosen) => {
    const values = series.flatMap((one) => chosen.flatMap((name) => one.curves[name])).filter((value) => value !== null);
    if (!values.length) return null;
    const epochs = series.flatMap((one) => one.epoch);
    const thin = series.length > 1;
    return figure({
      title, attributes: { "data-figure": "learning" },
      note: `${thin ? `One line for each of ${series.length} members; dots` : "The dot"} mark${thin ? "" : "s"} the epoch that was kept.`,
      legend: () => chosen.map((name) => [said[name] ?? `validation ${monitor ?? name.replace("validation_", "")}`, partColor(colors[name] ?? "validation")]),
      rows: () => {
        const first = series[0], step = Math.max(1, Math.ceil(first.epoch.length / 20));
        return table(["epoch", ...chosen], first.epoch.map((epoch, at) => [epoch, ...chosen.map((name) => first.curves[name][at] ?? "")]).filter((_, at) => at % step === 0 || at === first.epoch.length - 1));
      },
      draw: (width, height) => plot({
        width, height, title,
        x: { range: widen([Math.min(...epochs), Math.max(...epochs)]), label: "epoch" }, y: { range: widen(values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity])), label: "" },
        layers: series.flatMap((one, member) => chosen.flatMap((name) => {
          const points = one.epoch.map((epoch, at) => [epoch, one.curves[name][at] ?? NaN]), color = partColor(colors[name] ?? "validation");
          const kept = points.filter(([epoch]) => epoch === best[member]);
          return [{ kind: "line", thin, color, points }, { kind: "marks", color, points: name === "loss" ? [] : kept }];
        })),
      }),
    }).made;
  };
  const made = [losses.length ? chart("Loss", losses) : null, others.length ? chart(`Validation ${monitor ?? ""}`, others) : null].filter(Boolean);
  place.append(element("div", { class: "grid" }, made));
}

// What an answer rests on: the parts of each kind that move it most, and how faithful that is.
function why(found, { level, classes: names, column }) {
  const heads = content.map?.panels.some((panel) => panel.molecules) ? { edge: "bonds", node: "atoms", column: "columns" } : { edge: "edges", node: "nodes", column: "columns" };
  const signed = (value) => element("span", { class: value > 0 ? "raises" : "lowers" }, `${value > 0 ? "+" : "−"}${number(Math.abs(value), 3)}`);
  const lists = Object.entries(found.parts).map(([kind, parts]) => {
    const faithful = found.fidelity[kind];
    const said = faithful ? `Without ${faithful.count} ${heads[kind]} together it moves by ${number(faithful.change, 3)}, without as many at random by ${number(faithful.random, 3)}.` : "";
    return element("div", {}, element("h4", {}, heads[kind]), element("ul", {}, parts.map(([name, where, change]) => element("li", {}, signed(change), " ", own(name), where ? ` (${where})` : ""))), said ? element("p", { class: "note" }, said) : null);
  });
  const answer = names ? ["log odds of ", own(found.class), ` before calibration: ${number(found.answer)}`] : [own(column), `: ${number(found.answer)}`];
  return element("div", { class: "explained", "data-figure": "why" }, element("p", {}, answer), element("div", { class: "reasons" }, lists.length ? lists : "No part moves it."));
}

// The worst errors of the target that is chosen above; a row leads to its point on the map.
function worst(place) {
  const show = (at) => {
    const { part, ids, rows, unexplained } = content.targets[at].worst, { level, classes: names } = content.targets[at];
    if (!rows.length) {
      place.replaceChildren(element("p", { class: "note" }, "There are no labeled rows."));
      return;
    }
    const isClass = names !== undefined, drawn = maps?.panel(level)?.molecules, marked = rows.some((row) => row.unlike);
    const head = [...(drawn ? ["molecule"] : []), "row", "label", "prediction", isClass ? "probability of the label" : "error", ...ids, ...(marked ? ["unlike training"] : [])];
    const lines = rows.map((row) => {
      const point = maps?.panel(level)?.pointOf(row.row) ?? -1;
      const open = point < 0 ? {} : { tabindex: 0, role: "button", "aria-label": `Row ${row.row + 1}: show on the map`, onclick: () => maps.choose(level, point, true), onkeydown: (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          maps.choose(level, point, true);
        }
      } };
      const text = (value) => (typeof value === "number" ? number(value) : own(value ?? "–"));
      const cells = [element("td", {}, text(row.label)), element("td", {}, text(row.predicted)), element("td", { class: "number" }, number(isClass ? row.p : row.error)), ...row.ids.map((id) => element("td", { class: id.length > 24 ? "long" : null }, own(id))), ...(marked ? [element("td", { class: "long" }, own(row.unlike ?? ""))] : [])];
      const picture = drawn ? [element("td", {}, drawn[point] ? drawMolecule(drawn[point], {}, row.why?.colors) : "")] : [];
      const line = element("tr", open, picture, element("th", { scope: "row" }, whole(row.row + 1)), cells);
      return row.why ? [line, element("tr", { class: "why" }, element("td", { colspan: head.length }, why(row.why, content.targets[at])))] : [line];
    });
    place.replaceChildren(
      element("p", { class: "note" }, `The ${rows.length} rows of ${PART_NAMES[part]} whose predictions are farthest from their labels`, maps ? "; each leads to its point on the map." : ".",
        rows.some((row) => row.why) ? ` Below some, what the answer moves by without a part: ${drawn ? "red atoms, bonds and numbers" : "red numbers"} raise it, blue ones lower it.` : unexplained ? ` They are not explained here: ${unexplained}.` : ""),
      element("div", { class: "scroll" }, element("table", { class: "errors" }, element("thead", {}, element("tr", {}, head.map((name, at) => element("th", { scope: "col", class: name === "error" || name.startsWith("probability") ? "number" : null }, own(name))))), element("tbody", {}, lines))));
  };
  document.addEventListener("target", (event) => show(event.detail));
  show(0);
}
