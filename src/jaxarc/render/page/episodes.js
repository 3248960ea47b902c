// Episodes and tasks, unpacked when they are looked at.

const index = JSON.parse(document.getElementById("index").textContent);
const packed = document.getElementById("packed").textContent.split("\n");
const episodes = index.episodes.map((row) => Object.fromEntries(index.columns.map((name, i) => [name, row[i]])));
const SUBMIT = index.operations.indexOf("submit");
const RESIZE = index.operations.indexOf("resize");
const COPY_INPUT = index.operations.indexOf("copy input");

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

/** A line of JSON, then the target and every grid as each cell's change from the grid before it. */
function unpack(bytes) {
  const end = bytes.indexOf(10);
  const facts = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  const [height, width] = facts.shape;
  const size = height * width;
  const kinds = index.colors.length + 1;
  const values = new Uint8Array(size);
  const grids = [];
  for (let at = end + 1; at < bytes.length; at += size) {
    const cells = new Int8Array(size);
    for (let i = 0; i < size; i++) {
      values[i] = (values[i] + bytes[at + i]) % kinds;
      cells[i] = values[i] + NOTHING;
    }
    grids.push({ height, width, cells });
  }
  let paid = 0;
  const totals = [0, ...facts.rewards.map((reward) => (paid += reward))];
  return {
    ...facts,
    target: grids[0],
    grids: grids.slice(1),
    totals,
    invalid: new Set(facts.invalid),
    clipboards: facts.clipboards.map(([step, rows]) => [step, gridFromRows(rows)]),
  };
}

/** What is held after a step, or null. */
function clipboardAt(episode, step) {
  let held = null;
  for (const [from, grid] of episode.clipboards) if (from <= step) held = grid;
  return held && held.height ? held : null;
}

/** The cells that an action selects as a mask of the episode's canvas, or null where that does not matter. */
function selectionOf(episode, action) {
  const [operation, ...numbers] = action;
  if (operation === SUBMIT || operation === COPY_INPUT || operation === RESIZE || !numbers.length) return null;
  const { height, width } = episode.grids[0];
  const mask = new Uint8Array(height * width);
  const mark = (r, c) => { if (r < height && c < width) mask[r * width + c] = 1; };
  if (episode.format === "bbox") {
    const [top, bottom] = [Math.min(numbers[0], numbers[2]), Math.max(numbers[0], numbers[2])];
    const [left, right] = [Math.min(numbers[1], numbers[3]), Math.max(numbers[1], numbers[3])];
    for (let r = top; r <= bottom; r++) for (let c = left; c <= right; c++) mark(r, c);
  } else if (episode.format === "mask") {
    const bits = atob(numbers[1]);
    for (let i = 0; i < mask.length; i++) mask[i] = (bits.charCodeAt(i >> 3) >> (i & 7)) & 1;
  } else {
    mark(...numbers);
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
