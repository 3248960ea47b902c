// Selected cells, and how the three action formats write them.

export const OPERATION = {
  fill: 0, flood: 10, up: 20, down: 21, left: 22, right: 23, clockwise: 24, counterclockwise: 25, "flip-across": 26,
  "flip-down": 27, copy: 28, paste: 29, cut: 30, clear: 31, "copy-input": 32, resize: 33, submit: 34,
};
const WITHOUT_CELLS = new Set([OPERATION["copy-input"], OPERATION.submit]);

/** All cells between two corners, both included. */
export function rectangle([top, left], [bottom, right]) {
  const cells = [];
  for (let row = Math.min(top, bottom); row <= Math.max(top, bottom); row++) {
    for (let column = Math.min(left, right); column <= Math.max(left, right); column++) cells.push([row, column]);
  }
  return cells;
}

/** Cells on a straight way between two cells. */
export function line(from, to) {
  const steps = Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]), 1);
  const at = (k, axis) => Math.round(from[axis] + ((to[axis] - from[axis]) * k) / steps);
  return Array.from({ length: steps + 1 }, (_, k) => [at(k, 0), at(k, 1)]);
}

/** The same cells, each once. */
export function unique(cells) {
  return [...new Map(cells.map((cell) => [cell[0] * 100 + cell[1], cell])).values()];
}

/** Cells of the first list that are not in the second. */
export function without(cells, others) {
  const gone = new Set(others.map(([row, column]) => row * 100 + column));
  return cells.filter(([row, column]) => !gone.has(row * 100 + column));
}

/** Write an action: its operation, then its cells as the format takes them. */
export function toAction(operation, cells, format) {
  if (format === "mask") return [operation, ...(WITHOUT_CELLS.has(operation) ? [] : cells.flat())];
  if (WITHOUT_CELLS.has(operation)) cells = [[0, 0]];
  if (format === "point") return [operation, ...cells[cells.length - 1]];
  const rows = cells.map((cell) => cell[0]), columns = cells.map((cell) => cell[1]);
  return [operation, Math.min(...rows), Math.min(...columns), Math.max(...rows), Math.max(...columns)];
}

/** The cells that an action names. */
export function cellsOf(action, format) {
  const numbers = action.slice(1), cells = [];
  for (let k = 0; k < numbers.length; k += 2) cells.push([numbers[k], numbers[k + 1]]);
  return format === "bbox" ? rectangle(cells[0], cells[1]) : cells;
}
