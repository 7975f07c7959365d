// The form, and what is sent for it.

const form = document.getElementById("request");
const state = document.getElementById("state");
const answers = document.getElementById("answers");
const whyPlace = document.getElementById("why");
const TABLES = { nodes: "Nodes", edges: "Edges", graphs: "Graphs" };

let run = content.runs[0];
let texts = {}; // name of a field -> its textarea
let options = {};
let turn = 0; // answers that come after another request was sent are not shown

function toCsv(rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : Array.isArray(value) ? `[${value.join(", ")}]` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => line.map(cell).join(",")).join("\n");
}

function area(name, label, value, hint) {
  const id = `text-${name}`;
  texts[name] = element("textarea", { id, name, spellcheck: "false", autocapitalize: "off", "aria-describedby": `${id}-hint` });
  texts[name].value = value;
  return element("div", {}, element("label", { for: id, class: "control" }, label), texts[name],
    element("div", { id: `${id}-hint`, class: "note" }, hint));
}

function columnsOf(name) {
  const found = run.tables[name];
  if (!found) return "";
  const every = [...Object.values(found.keys), ...found.columns.map((column) => column.name)];
  return every.length ? `Columns: ${every.slice(0, 12).join(", ")}${every.length > 12 ? " …" : ""}.` : "";
}

function build() {
  texts = {};
  const example = run.example;
  const fields = [];
  if (run.reads === "smiles" && example.smiles) {
    fields.push(area("smiles", "SMILES", example.smiles.join("\n"), "One on each line, or CSV or JSON rows with a column of SMILES."));
  } else {
    for (const name of ["edges", "nodes", "graphs"]) {
      if (example[name] || run.tables[name]) fields.push(area(name, TABLES[name], example[name] ? toCsv(example[name]) : "", `CSV, or a list of rows as JSON. ${columnsOf(name)}`));
    }
  }
  const coverages = run.coverages.map((share) => `${whole(100 * share)} %`);
  options.coverage = select(["none", ...coverages], run.coverages.indexOf(0.9) + 1 || coverages.length, () => {});
  options.coverage.name = "coverage";
  const row = element("div", { class: "row" },
    content.runs.length > 1 ? labeled("Run", select(content.runs.map((each) => each.name), content.runs.indexOf(run), (at) => { run = content.runs[at]; build(); })) : null,
    coverages.length ? labeled("Coverage of intervals and sets", options.coverage) : null,
    element("button", { class: "main", type: "submit" }, "Predict"),
    element("button", { type: "button", onclick: () => { for (const one of Object.values(texts)) one.value = ""; Object.values(texts)[0].focus(); } }, "Clear"));
  form.replaceChildren(element("div", { class: "fields" }, fields), row);
  const targets = run.targets.map((target) => target.level === "link" ? "links" : `${target.column} of each ${target.level === "graph" && run.reads === "smiles" ? "molecule" : target.level}`).join(", ");
  document.getElementById("lead").textContent = `${run.name} predicts ${targets}. At most ${whole(content.rows)} rows at a time; Ctrl+Enter predicts.`;
  answers.hidden = whyPlace.hidden = true;
  say("");
}

function say(text, wrong = false) {
  state.textContent = text;
  state.classList.toggle("wrong", wrong);
}

// The rows of a field: JSON where it begins as such, else CSV as it is.
function rowsOf(text) {
  return /^[[{]/.test(text) ? [].concat(JSON.parse(text)) : text;
}

function dataOf() {
  const data = { run: run.name };
  for (const [name, place] of Object.entries(texts)) {
    const text = place.value.trim();
    if (!text) continue;
    if (name !== "smiles") {
      data[name] = rowsOf(text);
    } else if (/^[{]|^\[\s*[{"\]]/.test(text)) {
      const rows = [].concat(JSON.parse(text));
      if (rows.every((row) => typeof row === "string")) data.smiles = rows;
      else data.graphs = rows;
    } else if (text.split("\n")[0].split(/[,;\t]/).some((cell) => cell.trim().replaceAll('"', "") === run.tables.graphs.keys.smiles)) {
      data.graphs = text;
    } else {
      data.smiles = text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
    }
  }
  if (Object.keys(data).length === 1) throw new Error("there is nothing to predict: paste SMILES or rows");
  return data;
}

async function ask(address, body) {
  const answer = await fetch(address, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const found = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(found.error);
  return found;
}

async function explain(data, row, target, line) {
  const mine = ++turn;
  for (const other of answers.querySelectorAll("tr.chosen")) other.classList.remove("chosen");
  line.classList.add("chosen");
  say(`Explaining row ${row} …`);
  try {
    const found = await ask("/explain", { ...data, rows: [row], target: target.column, level: target.level });
    if (mine !== turn) return;
    whyPlace.replaceChildren(...whySection(found.explanations[0]));
    whyPlace.hidden = false;
    say("");
    return true;
  } catch (error) {
    if (mine !== turn) return;
    whyPlace.hidden = true;
    say(`Not explained: ${error.message}`, true);
  }
  return false;
}

async function predict() {
  const mine = ++turn;
  const button = form.querySelector("button.main");
  try {
    const data = dataOf();
    const coverage = [null, ...run.coverages][options.coverage.selectedIndex];
    button.disabled = true;
    say("Predicting …");
    const found = await ask("/predict", coverage ? { ...data, coverage } : data);
    if (mine !== turn) return;
    say("");
    show(data, found);
  } catch (error) {
    if (mine !== turn) return;
    answers.hidden = whyPlace.hidden = true;
    say(error instanceof SyntaxError ? `the rows are no JSON: ${error.message}` : error.message, true);
  } finally {
    button.disabled = false;
    document.documentElement.dataset.answered = String(mine);
  }
}

function show(data, found) {
  const levels = Object.entries(found.predictions);
  const able = run.explains ? (row, target, line) => explain(data, row, target, line).then((done) => done && whyPlace.querySelector("h2").focus()) : null;
  answers.replaceChildren(
    element("h2", {}, "Answers"),
    ...levels.flatMap(([level, rows]) => [
      levels.length > 1 ? element("h3", {}, TABLES[`${level}s`] ?? level) : null,
      answersTable(run, level, rows, able),
    ]).filter(Boolean),
    element("ul", { class: "note" }, found.notes.map((text) => element("li", {}, own(text)))),
    element("details", {}, element("summary", {}, "The answer as JSON"), element("pre", {}, JSON.stringify(found, null, 1).slice(0, 20000))));
  answers.hidden = false;
  whyPlace.hidden = true;
  const first = answers.querySelector("tr[data-row] button");
  if (first && levels.length) {
    const [level, rows] = levels[0];
    const at = rows.findIndex((row) => !row.error);
    const target = run.targets.find((each) => each.level === level);
    const line = answers.querySelector(`tr[data-row="${at + 1}"]`);
    if (target && line) explain(data, at + 1, target, line);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  predict();
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    predict();
  }
});
build();
document.documentElement.dataset.ready = "yes";
