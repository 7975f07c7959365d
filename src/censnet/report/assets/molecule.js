// A molecule from the positions of its atoms and the kinds of its bonds; some of them may be lit.

const ELEMENTS = { N: ["#2b52c8", "#8aa6ff"], O: ["#c22a1f", "#ff8a80"], S: ["#8a6d00", "#e3c64a"], F: ["#2c7a1e", "#8fd483"], Cl: ["#2c7a1e", "#8fd483"], Br: ["#8a3b12", "#e0996f"], I: ["#6b1fa0", "#c79bea"], P: ["#a65300", "#f2a85c"] };
const LOW = "₀₁₂₃₄₅₆₇₈₉";

function drawMolecule(molecule, lit = {}, colors = null) {
  const { atoms, bonds } = molecule;
  const xs = atoms.map((atom) => atom[0]), ys = atoms.map((atom) => atom[1]);
  const [left, top] = [Math.min(...xs) - 90, Math.min(...ys) - 80];
  const [width, height] = [Math.max(...xs) + 90 - left, Math.max(...ys) + 80 - top];
  // A small molecule is not blown up to fill its frame.
  const [w, h] = [Math.max(width, 750), Math.max(height, 500)];
  const svg = shape("svg", { viewBox: `${left - (w - width) / 2} ${top - (h - height) / 2} ${w} ${h}`, role: "img", "aria-label": `Molecule of ${atoms.length} atoms` });
  if (colors) {
    // Red raises the answer, blue lowers it; the color is full at the largest change.
    const most = Math.max(1e-9, ...[...colors.atoms, ...colors.bonds].map(([, change]) => Math.abs(change)));
    const paint = (change) => ({ class: change > 0 ? "raises" : "lowers", opacity: (0.75 * Math.min(1, Math.abs(change) / most)).toFixed(3) });
    for (const [at, change] of colors.bonds) {
      if (!bonds[at]) continue;
      const [[x1, y1], [x2, y2]] = [atoms[bonds[at][0]], atoms[bonds[at][1]]];
      svg.append(shape("line", { ...paint(change), x1, y1, x2, y2 }));
    }
    for (const [at, change] of colors.atoms) if (atoms[at]) svg.append(shape("circle", { ...paint(change), cx: atoms[at][0], cy: atoms[at][1], r: 42 }));
  }
  for (const at of lit.bonds ?? []) {
    if (!bonds[at]) continue;
    const [[x1, y1], [x2, y2]] = [atoms[bonds[at][0]], atoms[bonds[at][1]]];
    svg.append(shape("line", { class: "lit-bond", x1, y1, x2, y2 }));
  }
  for (const at of lit.atoms ?? []) if (atoms[at]) svg.append(shape("circle", { class: "lit", cx: atoms[at][0], cy: atoms[at][1], r: 42 }));
  const neighbors = atoms.map(() => []);
  for (const [a, b] of bonds) {
    neighbors[a].push(b);
    neighbors[b].push(a);
  }
  for (const [a, b, kind] of bonds) svg.append(...drawBond(atoms, neighbors, a, b, kind));
  atoms.forEach((atom, at) => {
    if (atom.length > 2) svg.append(...drawAtom(atom, neighbors[at].map((other) => atoms[other])));
  });
  return svg;
}

function drawBond(atoms, neighbors, a, b, kind) {
  const [[x1, y1], [x2, y2]] = [atoms[a], atoms[b]];
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [nx, ny] = [-(y2 - y1) / length, (x2 - x1) / length];
  const line = (shift, trim = 0, dash = null) => shape("line", {
    class: "bond", "stroke-dasharray": dash,
    x1: x1 + nx * shift + (x2 - x1) * trim, y1: y1 + ny * shift + (y2 - y1) * trim,
    x2: x2 + nx * shift - (x2 - x1) * trim, y2: y2 + ny * shift - (y2 - y1) * trim,
  });
  if (kind === 5) return [shape("polygon", { class: "bond-wedge", points: `${x1},${y1} ${x2 + nx * 16},${y2 + ny * 16} ${x2 - nx * 16},${y2 - ny * 16}` })];
  if (kind === 6) {
    return [0.15, 0.32, 0.49, 0.66, 0.83, 1].map((share) => {
      const [x, y, half] = [x1 + (x2 - x1) * share, y1 + (y2 - y1) * share, 16 * share];
      return shape("line", { class: "bond", x1: x + nx * half, y1: y + ny * half, x2: x - nx * half, y2: y - ny * half });
    });
  }
  if (kind === 3) return [line(0), line(20, 0.1), line(-20, 0.1)];
  if (kind !== 2 && kind !== 4) return [line(0, 0, kind === 0 ? "18 18" : null)];
  // The second line lies on the side where the other neighbors are: inside a ring.
  let side = 0;
  for (const [end, other] of [[a, b], [b, a]]) {
    for (const next of neighbors[end]) if (next !== other) side += Math.sign(nx * (atoms[next][0] - x1) + ny * (atoms[next][1] - y1));
  }
  const alone = neighbors[a].length === 1 || neighbors[b].length === 1;
  if (side === 0 && alone && kind === 2) return [line(10), line(-10)];
  return [line(0), line(side < 0 ? -20 : 20, 0.12, kind === 4 ? "18 18" : null)];
}

function drawAtom([x, y, symbol, hydrogens, charge], around) {
  const many = (count) => (count > 1 ? String(count).replace(/\d/g, (digit) => LOW[digit]) : "");
  const sign = charge ? `${Math.abs(charge) > 1 ? Math.abs(charge) : ""}${charge > 0 ? "+" : "−"}` : "";
  const h = hydrogens ? `H${many(hydrogens)}` : "";
  const toLeft = around.length > 0 && around.every((other) => other[0] > x + 20);
  const text = toLeft ? h + sign + symbol : symbol + h + sign;
  const size = 46, step = 28;
  // The symbol stays at the atom; hydrogens and charge grow away from the bonds.
  const shift = (text.length - symbol.length) * step * 0.5 * (toLeft ? -1 : 1);
  const color = (ELEMENTS[symbol] ?? [null, null])[isDark() ? 1 : 0];
  const written = shape("text", { class: "atom", x: x + shift, y: y + size * 0.36, "text-anchor": "middle" }, text);
  written.style.fontSize = `${size}px`;
  written.style.fill = color ?? "var(--ink)";
  return [shape("ellipse", { class: "atom-back", cx: x + shift, cy: y, rx: Math.max(28, text.length * step * 0.6), ry: 30 }), written];
}
