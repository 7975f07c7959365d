// Answers as a table: for each row what it is, the answer, its interval or probability, and its marks.

const NS = "http://www.w3.org/2000/svg";

// The columns of an answer that belong to one target.
function answerOf(row, column, kind) {
  if (column === "link" && Number.isFinite(row.link_p)) {
    const linked = row.link_p >= 0.5;
    return { value: linked ? "link" : "no link", share: linked ? row.link_p : 1 - row.link_p, set: row.link_set, std: row.link_std };
  }
  const value = row[`${column}_predicted`];
  const found = { value, low: row[`${column}_low`], high: row[`${column}_high`], set: row[`${column}_set`] };
  found.clipped = row[`${column}_clipped`] === true;
  found.std = row[`${column}_std`];
  if (kind !== "regression" && kind !== "oriented") found.share = row[`${column}_p_${value}`] ?? row[`${column}_p`];
  return found;
}

const isNumber = (target) => target.kind === "regression" || target.kind === "oriented";

// The range that the intervals of all rows share.
function rangeOf(rows, column) {
  const ends = rows.flatMap((row) => [row[`${column}_low`], row[`${column}_high`], row[`${column}_predicted`]]);
  const known = ends.filter((value) => Number.isFinite(value));
  if (!known.length) return null;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = (high - low || Math.abs(high) || 1) * 0.04;
  return [low - room, high + room];
}

function intervalPlot(found, range) {
  const at = (value) => 4 + (172 * (value - range[0])) / (range[1] - range[0]);
  const parts = [shape("line", { class: "frame", x1: 4, x2: 176, y1: 18.5, y2: 18.5 })];
  if (Number.isFinite(found.low) && Number.isFinite(found.high)) {
    parts.push(shape("line", { class: "range", x1: at(found.low), x2: at(found.high), y1: 9, y2: 9 }));
  }
  parts.push(shape("circle", { class: "dot", cx: at(found.value), cy: 9, r: 4.5 }));
  return shape("svg", { viewBox: "0 0 180 22", "aria-hidden": "true" }, parts);
}

function sharePlot(share) {
  return shape("svg", { viewBox: "0 0 180 22", "aria-hidden": "true" },
    shape("rect", { class: "rest", x: 0, y: 6, width: 180, height: 10, rx: 2 }),
    shape("rect", { class: "share", x: 0, y: 6, width: Math.max(1, 180 * share), height: 10, rx: 2 }));
}

function answerCells(found, target, range) {
  if (found.value === null || found.value === undefined) return [element("td", {}, "–"), element("td", {})];
  if (isNumber(target)) {
    const between = Number.isFinite(found.low) ? `${number(found.low)} to ${number(found.high)}`
      : Number.isFinite(found.std) ? `± ${number(found.std)}` : "";
    return [
      element("td", {}, element("span", { class: "answer" }, number(found.value)), " ", element("span", { class: "between" }, between)),
      element("td", {}, range ? intervalPlot(found, range) : null),
    ];
  }
  const set = found.set === undefined || found.set === null ? "" : `{${found.set}}`;
  return [
    element("td", {}, element("span", { class: "answer" }, own(found.value)), " ",
      element("span", { class: "between" }, [Number.isFinite(found.share) ? percent(found.share) : "", set].filter(Boolean).join("  "))),
    element("td", {}, Number.isFinite(found.share) ? sharePlot(found.share) : null),
  ];
}

// What a reader must know of a row: it cannot be used, it is unlike training rows, its answer was clipped.
function flagsOf(row, targets) {
  const flags = [];
  if (row.error) flags.push(row.error);
  if (row.unlike_training) flags.push(`unlike the training data: ${row.unlike_training}`);
  for (const target of targets) {
    if (row[`${target.column}_clipped`] === true) {
      flags.push(`${target.column} is at the end of the training range (${number(row[`${target.column}_raw`])} before)`);
    }
  }
  return flags;
}

const SUFFIXES = /_(predicted|p|p_.*|std|std_.*|low|high|set|clipped|raw|2nd.*|3rd.*|4th.*|5th.*)$/;

function nameOf(row, targets) {
  const own = new Set(targets.map((target) => target.column));
  const parts = Object.entries(row)
    .filter(([key]) => key !== "error" && key !== "unlike_training" && !own.has(key.replace(SUFFIXES, "")))
    .map(([, value]) => (value === null ? "–" : String(value)));
  return parts.join(" → ");
}

const MOST = 200;

// `explain` is called with the number of a row, from 1, and a target.
function answersTable(run, level, rows, explain) {
  const targets = run.targets.filter((target) => target.level === level);
  if (!targets.length) return plainTable(rows);
  const ranges = Object.fromEntries(targets.filter(isNumber).map((target) => [target.column, rangeOf(rows, target.column)]));
  const shown = rows.slice(0, MOST);
  const lines = shown.flatMap((row, at) => targets.map((target, which) => {
    const found = answerOf(row, target.column, target.kind);
    const flags = which === 0 ? flagsOf(row, targets) : [];
    const able = explain && found.value !== null && found.value !== undefined;
    const line = element("tr", {},
      element("th", { scope: "row" }, which === 0 ? own(nameOf(row, targets) || `row ${at + 1}`) : ""),
      targets.length > 1 ? element("td", {}, own(target.column)) : null,
      answerCells(found, target, ranges[target.column]),
      element("td", { class: "flag" }, flags.map((text) => element("div", {}, own(text)))),
      element("td", {}, able ? element("button", {
        type: "button", "aria-label": `Why row ${at + 1}, ${target.column}`, onclick: () => explain(at + 1, target, line),
      }, "Why?") : null));
    line.dataset.row = at + 1;
    return line;
  }));
  const head = ["row", ...(targets.length > 1 ? ["target"] : []), targets.length > 1 ? "answer" : targets[0].column, "", "notes", ""];
  return element("div", {},
    element("table", { class: "answers-table" },
      element("thead", {}, element("tr", {}, head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, lines)),
    rows.length > MOST ? element("p", { class: "note" }, `The first ${MOST} of ${whole(rows.length)} rows are shown.`) : null);
}

function plainTable(rows) {
  const names = Object.keys(rows[0] ?? {});
  return element("div", { class: "scroll" }, table(names, rows.slice(0, MOST).map((row) => names.map((name) => row[name]))));
}
