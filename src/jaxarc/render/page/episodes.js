// Episodes and tasks, unpacked when the reader opens them.

const COPY_INPUT = 32, RESIZE = 33, SUBMIT = 34; // operations

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

async function loadTask(taskIndex) {
  if (!unpackedTasks.has(taskIndex)) {
    const task = JSON.parse(new TextDecoder().decode(await inflate(packed[index.tasks[taskIndex].packed])));
    task.demonstrations = task.demonstrations.map((pair) => pair.map(gridFromRows));
    unpackedTasks.set(taskIndex, task);
  }
  return unpackedTasks.get(taskIndex);
}

async function loadEpisode(episodeIndex) {
  if (!unpackedEpisodes.has(episodeIndex)) {
    unpackedEpisodes.set(episodeIndex, unpack(await inflate(packed[episodes[episodeIndex].packed])));
    if (unpackedEpisodes.size > KEPT) unpackedEpisodes.delete(unpackedEpisodes.keys().next().value);
  }
  return unpackedEpisodes.get(episodeIndex);
}

/**
 * Unpack an episode: a line of JSON; in the mask format a bit for each cell of a selection; then the target and all
 * grids, a byte for each cell. A byte is the difference from what is known: of the target from padding, of the first
 * grid from the target, of a later grid from the grid before, its selected cells painted. See replay_page.py.
 */
function unpack(bytes) {
  const end = bytes.indexOf(10);
  const facts = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  const [height, width] = facts.shape;
  const size = height * width;
  const cellValues = index.colors.length + 1; // the padding and the colors
  const [masks, start] = masksOf(facts, bytes, end + 1);
  const selections = facts.actions.map((action, i) => masks[i] || selectionOf(action, facts));
  const readGrid = (frame, known) => {
    const cells = new Int8Array(size);
    const from = start + frame * size;
    for (let i = 0; i < size; i++) cells[i] = ((known[i] - PADDING + bytes[from + i]) % cellValues) + PADDING;
    return { height, width, cells };
  };
  const target = readGrid(0, new Int8Array(size).fill(PADDING));
  const grids = [readGrid(1, target.cells)];
  facts.actions.forEach((action, i) => grids.push(readGrid(i + 2, painted(grids[i], selections[i], facts.paints[i]))));
  let paid = 0;
  const totals = [0, ...facts.rewards.map((reward) => (paid += reward))];
  const clipboards = facts.clipboards.map(([step, rows]) => [step, gridFromRows(rows)]);
  return { ...facts, target, grids, selections, totals, invalid: new Set(facts.invalid), clipboards };
}

/** The cells of a grid, those selected in the active area in one color; without a paint as they are. */
function painted(grid, selection, paint) {
  if (paint === null || !selection) return grid.cells;
  return grid.cells.map((color, i) => (selection[i] && color !== PADDING ? paint : color));
}

/** Whether an operation changes or takes the selected cells. */
function actsOnCells(operation) {
  return ![COPY_INPUT, RESIZE, SUBMIT].includes(operation);
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

/** Where an action acts, in words; rows and columns count from 0, as in the API. */
function whereOf(episode, [operation, ...numbers]) {
  if (operation === SUBMIT || operation === COPY_INPUT || !numbers.length) return "";
  const count = episode.format === "mask" ? numbers.shift() : 0;
  const [r1, c1, r2 = r1, c2 = c1] = numbers;
  const [top, bottom, left, right] = [Math.min(r1, r2), Math.max(r1, r2), Math.min(c1, c2), Math.max(c1, c2)];
  if (operation === RESIZE) return `to ${bottom + 1} × ${right + 1}`;
  const fills = !count || count === (1 + bottom - top) * (1 + right - left);
  return `${fills ? "" : `${count} cells in `}${span("row", top, bottom)}, ${span("column", left, right)}`;
}

/** An action in one line, as the commands print it. */
function phraseOf(episode, action) {
  const where = whereOf(episode, action);
  return [nameOf(action), where].filter(Boolean).join(action[0] === RESIZE ? " " : ", ");
}

function span(word, from, to) {
  return from === to ? `${word} ${from}` : `${word}s ${from}–${to}`;
}

function signed(number) {
  if (number === 0) return "0";
  const text = Math.abs(number).toFixed(Math.abs(number) >= 10 ? 1 : 3).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  return number < 0 ? `−${text}` : `+${text}`;
}

function percent(share) {
  return `${(100 * share).toFixed(share === 1 || share === 0 ? 0 : 1)} %`;
}
