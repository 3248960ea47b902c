// Episodes and tasks, unpacked when they are looked at.

const index = JSON.parse(document.getElementById("index").textContent);
const packed = document.getElementById("packed").textContent.split("\n");
const episodes = index.episodes.map((row) => Object.fromEntries(index.columns.map((name, i) => [name, row[i]])));

const unpackedTasks = new Map();
const unpackedEpisodes = new Map(); // the latest few
const KEPT = 12;

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function loadTask(place) {
  if (!unpackedTasks.has(place)) {
    const task = JSON.parse(new TextDecoder().decode(await inflate(packed[index.tasks[place].packed])));
    task.demonstrations = task.demonstrations.map((pair) => pair.map(gridFromRows));
    unpackedTasks.set(place, task);
  }
  return unpackedTasks.get(place);
}

async function loadEpisode(place) {
  if (!unpackedEpisodes.has(place)) {
    unpackedEpisodes.set(place, unpack(await inflate(packed[episodes[place].packed])));
    if (unpackedEpisodes.size > KEPT) unpackedEpisodes.delete(unpackedEpisodes.keys().next().value);
  }
  return unpackedEpisodes.get(place);
}

/** A line of JSON; of masks a bit for each cell; then the target and all grids, as how much they differ from expected. */
function unpack(bytes) {
  const end = bytes.indexOf(10);
  const facts = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  const [height, width] = facts.shape;
  const size = height * width;
  const kinds = index.colors.length + 1;
  const [masks, start] = masksOf(facts, bytes, end + 1);
  const selections = facts.actions.map((action, i) => masks[i] || selectionOf(action, facts));
  const gridAt = (place, expected) => {
    const cells = new Int8Array(size);
    const from = start + place * size;
    for (let i = 0; i < size; i++) cells[i] = ((expected[i] - NOTHING + bytes[from + i]) % kinds) + NOTHING;
    return { height, width, cells };
  };
  const target = gridAt(0, new Int8Array(size).fill(NOTHING));
  const grids = [gridAt(1, target.cells)];
  facts.actions.forEach((action, i) => {
    grids.push(gridAt(i + 2, expectedCells(grids[i], grids[0], action[0], selections[i])));
  });
  let paid = 0;
  const totals = [0, ...facts.rewards.map((reward) => (paid += reward))];
  const clipboards = facts.clipboards.map(([step, rows]) => [
    step, rows ? gridFromRows(rows) : expectedClipboard(grids[step - 1], selections[step - 1]),
  ]);
  return { ...facts, target, grids, selections, totals, invalid: new Set(facts.invalid), clipboards };
}

/** The selections of an episode with masks, by step, and where the bytes behind them begin. */
function masksOf(facts, bytes, start) {
  if (facts.format !== "mask") return [[], start];
  const size = facts.shape[0] * facts.shape[1];
  const masks = facts.actions.map(([operation]) => {
    if (!actsOnCells(operation)) return null;
    const mask = Uint8Array.from({ length: size }, (_, i) => (bytes[start + (i >> 3)] >> (i & 7)) & 1);
    start += Math.ceil(size / 8);
    return mask;
  });
  return [masks, start];
}

/** What is held after a step, or null. */
function clipboardAt(episode, step) {
  let held = null;
  for (const [from, grid] of episode.clipboards) if (from <= step) held = grid;
  return held && held.height ? held : null;
}

/** The cells that a point or a box selects on the canvas of its episode, or null where that does not matter. */
function selectionOf([operation, ...numbers], { format, shape: [height, width] }) {
  if (!actsOnCells(operation) || !numbers.length) return null;
  const mask = new Uint8Array(height * width);
  const [r1, c1, r2, c2] = format === "bbox" ? numbers : [...numbers, ...numbers];
  for (let r = Math.min(r1, r2); r <= Math.max(r1, r2) && r < height; r++) {
    for (let c = Math.min(c1, c2); c <= Math.max(c1, c2) && c < width; c++) mask[r * width + c] = 1;
  }
  return mask;
}

function nameOf(action) {
  const name = index.operations[action[0]] || `operation ${action[0]}`;
  return name.replace(/^(flood fill|fill) (\d)$/, (_, verb, color) => `${verb} ${index.colors[Number(color)]}`);
}

/** Where an action acts, in words; short ones for the list. */
function whereOf(episode, action) {
  const [operation, ...numbers] = action;
  if (operation === SUBMIT || operation === COPY_INPUT || !numbers.length) return "";
  if (episode.format === "bbox") {
    const [r1, c1, r2, c2] = numbers;
    const [top, bottom, left, right] = [Math.min(r1, r2), Math.max(r1, r2), Math.min(c1, c2), Math.max(c1, c2)];
    if (operation === RESIZE) return `to ${bottom + 1} × ${right + 1}`;
    return `${span("row", top, bottom)}, ${span("column", left, right)}`;
  }
  if (episode.format === "point") {
    return operation === RESIZE ? `to ${numbers[0] + 1} × ${numbers[1] + 1}` : `row ${numbers[0]}, column ${numbers[1]}`;
  }
  return operation === RESIZE ? "" : `${numbers[0]} cell${numbers[0] === 1 ? "" : "s"}`;
}

function span(word, from, to) {
  return from === to ? `${word} ${from}` : `${word}s ${from}–${to}`;
}

function signed(number) {
  const text = Math.abs(number).toFixed(Math.abs(number) >= 10 ? 1 : 3).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  return number < 0 ? `−${text}` : `+${text}`;
}

function percent(share) {
  return `${(100 * share).toFixed(share === 1 || share === 0 ? 0 : 1)} %`;
}
