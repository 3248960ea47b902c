// What an operation is expected to make of a grid. expected_grids.py says the same, number by number: an episode holds
// how its grids differ from that.

const FLOOD_FILL = 10;
const COPY = 28, CUT = 30, CLEAR = 31, COPY_INPUT = 32, RESIZE = 33, SUBMIT = 34;
const MOVES = new Map([[20, [-1, 0]], [21, [1, 0]], [22, [0, -1]], [23, [0, 1]]]); // up, down, left, right
// Row and column of a turned box, and its height and width before: from where the cell comes.
const TURNS = new Map([
  [24, (r, c, height) => [height - 1 - c, r]], // clockwise
  [25, (r, c, height, width) => [c, width - 1 - r]], // counter-clockwise
  [26, (r, c, height, width) => [r, width - 1 - c]], // left-right
  [27, (r, c, height) => [height - 1 - r, c]], // up-down
]);
const SWAPS_SIDES = new Set([24, 25]);

function actsOnCells(operation) {
  return ![COPY_INPUT, RESIZE, SUBMIT].includes(operation);
}

/** The cells after an operation, if it does what it usually does. */
function expectedCells(before, first, operation, selection) {
  if (operation === COPY_INPUT) return first.cells;
  const chosen = chosenCells(before, selection);
  const isOnAll = MOVES.has(operation) || TURNS.has(operation) || operation === CLEAR;
  if (isOnAll && !chosen.includes(1)) before.cells.forEach((color, i) => { chosen[i] = color === NOTHING ? 0 : 1; });
  const filled = (color) => before.cells.map((old, i) => (chosen[i] ? color : old));
  if (operation < FLOOD_FILL) return filled(operation);
  if (operation === CUT || operation === CLEAR) return filled(0);
  if (MOVES.has(operation)) return moved(before, chosen, filled(0), ...MOVES.get(operation));
  if (TURNS.has(operation) && chosen.includes(1)) return turned(before, chosen, operation);
  return before.cells;
}

/** The box of cells that copy and cut take. */
function expectedClipboard(before, selection) {
  const chosen = chosenCells(before, selection);
  const { top, left, height, width } = boxOf(chosen, before);
  const cells = Int8Array.from({ length: height * width }, (_, i) => {
    const at = (top + Math.floor(i / width)) * before.width + left + (i % width);
    return chosen[at] ? before.cells[at] : NOTHING;
  });
  return { height, width, cells };
}

function chosenCells(grid, selection) {
  return Uint8Array.from(grid.cells, (color, i) => (selection && selection[i] && color !== NOTHING ? 1 : 0));
}

function moved({ height, width, cells }, chosen, after, down, right) {
  for (let r = 0; r < height; r++) {
    for (let c = 0; c < width; c++) {
      const [row, column] = [r - down, c - right];
      if (row < 0 || row >= height || column < 0 || column >= width || cells[r * width + c] === NOTHING) continue;
      if (chosen[row * width + column]) after[r * width + c] = cells[row * width + column];
    }
  }
  return after;
}

function turned(grid, chosen, operation) {
  const { top, left, height, width } = boxOf(chosen, grid);
  const [rows, columns] = SWAPS_SIDES.has(operation) ? [width, height] : [height, width];
  const at = (r, c) => (top + r) * grid.width + left + c;
  const after = grid.cells.slice();
  for (let r = 0; r < height; r++) for (let c = 0; c < width; c++) after[at(r, c)] = 0;
  for (let r = 0; r < rows && top + r < grid.height; r++) {
    for (let c = 0; c < columns && left + c < grid.width; c++) {
      if (grid.cells[at(r, c)] !== NOTHING) after[at(r, c)] = grid.cells[at(...TURNS.get(operation)(r, c, height, width))];
    }
  }
  return after;
}

function boxOf(chosen, { width: across }) {
  let [top, left, bottom, right] = [Infinity, Infinity, -1, -1];
  chosen.forEach((is, i) => {
    if (!is) return;
    const [r, c] = [Math.floor(i / across), i % across];
    [top, left, bottom, right] = [Math.min(top, r), Math.min(left, c), Math.max(bottom, r), Math.max(right, c)];
  });
  return { top, left, height: bottom - top + 1, width: right - left + 1 };
}
