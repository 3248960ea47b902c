// Grids as SVG, and the lines around cells.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "g", "path", "circle", "text"]);
export const COLOR_NAMES = [
  "black", "blue", "red", "green", "yellow", "gray", "magenta", "orange", "light blue", "maroon",
];

/** Make an element with attributes and children. */
export function make(name, attributes = {}, ...children) {
  const element = DRAWN.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Draw a grid as a picture that says its size and rows to a screen reader; -1 is drawn as nothing.
 *  Colors are those of ARC, or with "game-" those of ARC-AGI-3. */
export function drawGrid(grid, label, cellSize, colors = "") {
  const rows = grid.length, columns = grid[0].length;
  const words = grid.map((line) => line.map((color) => (color < 0 ? "empty" : colors ? color : COLOR_NAMES[color])).join(" ")).join("; ");
  const picture = make("svg", {
    class: "grid", role: "img", "aria-label": `${label}, ${rows} by ${columns}: ${words}`,
    viewBox: `0 0 ${columns} ${rows}`, width: columns * cellSize, height: rows * cellSize, "shape-rendering": "crispEdges",
  });
  const runs = new Map();
  grid.forEach((line, row) => line.forEach((color, column) => {
    if (color >= 0) runs.set(color, `${runs.get(color) ?? ""}M${column} ${row}h1v1h-1z`);
  }));
  for (const [color, path] of runs) {
    const cells = make("path", { d: path });
    cells.style.fill = `var(--color-${colors}${color})`;
    picture.append(cells);
  }
  const lines = make("path", { d: gridLines(rows, columns), "vector-effect": "non-scaling-stroke" });
  lines.style.cssText = "fill: none; stroke: #80848a; stroke-opacity: .55; stroke-width: 1px";
  picture.append(lines);
  return picture;
}

/** Path along the edges between these cells, [row, column] each, and all others. */
export function border(cells) {
  const there = new Set(cells.map(([row, column]) => row * 100 + column));
  const has = (row, column) => there.has(row * 100 + column);
  let path = "";
  for (const [row, column] of cells) {
    if (row === 0 || !has(row - 1, column)) path += `M${column} ${row}h1`;
    if (!has(row + 1, column)) path += `M${column} ${row + 1}h1`;
    if (column === 0 || !has(row, column - 1)) path += `M${column} ${row}v1`;
    if (!has(row, column + 1)) path += `M${column + 1} ${row}v1`;
  }
  return path;
}

/** Pixels for a cell, so that a grid of this many rows and columns fits a square. */
export function fittingCell(grid, side, most) {
  return Math.max(2, Math.min(most, Math.floor(side / Math.max(grid.length, grid[0].length))));
}

function gridLines(rows, columns) {
  let path = "";
  for (let row = 1; row < rows; row++) path += `M0 ${row}h${columns}`;
  for (let column = 1; column < columns; column++) path += `M${column} 0v${rows}`;
  return path;
}
