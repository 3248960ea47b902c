"use strict";
// Grids on canvases. A grid is {height, width, cells}, cells row by row, -1 outside its active area.

const PADDING = -1;

function gridFromRows(rows) {
  const height = rows.length;
  const width = height ? rows[0].length : 0;
  const cells = new Int8Array(height * width);
  rows.forEach((row, r) => {
    for (let c = 0; c < width; c++) cells[r * width + c] = row[c] === "." ? PADDING : Number(row[c]);
  });
  return { height, width, cells };
}

/** Rows and columns of the active area, which starts at the top left. */
function activeArea(grid) {
  let rows = 0;
  let columns = 0;
  while (rows < grid.height && grid.cells[rows * grid.width] !== PADDING) rows++;
  while (columns < grid.width && grid.cells[columns] !== PADDING) columns++;
  return { rows, columns };
}

function cellAt(grid, row, column) {
  return row < grid.height && column < grid.width ? grid.cells[row * grid.width + column] : PADDING;
}

function countWrong(grid, target) {
  let wrong = 0;
  for (let i = 0; i < grid.cells.length; i++) wrong += grid.cells[i] !== target.cells[i] ? 1 : 0;
  return wrong;
}

function textOf(grid) {
  const { rows, columns } = activeArea(grid);
  const lines = [];
  for (let r = 0; r < rows; r++) lines.push(Array.from(grid.cells.subarray(r * grid.width, r * grid.width + columns)).join(" "));
  return lines.join("\n");
}

/** What a screen reader says of a grid. */
function describe(grid, names) {
  const { rows, columns } = activeArea(grid);
  const counts = new Array(names.length).fill(0);
  for (const cell of grid.cells) if (cell !== PADDING) counts[cell]++;
  const colors = names.map((name, color) => [counts[color], name]).filter(([count]) => count > 0);
  colors.sort((one, other) => other[0] - one[0]);
  return `${rows} by ${columns} cells: ${colors.map(([count, name]) => `${count} ${name}`).join(", ")}`;
}

/** Make a canvas as large as rows x columns of cells, sharp on every screen, and return how to draw on it. */
function prepare(canvas, rows, columns, side) {
  const ratio = Math.max(1, Math.round(window.devicePixelRatio || 1));
  const [width, height] = [columns * side + 1, rows * side + 1];
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

/**
 * Draw a grid: its cells, thin lines between them, the selected cells outlined.
 * `look` is {colors, line, outside, numbers}.
 */
function drawGrid(canvas, grid, side, look, selected = null) {
  const [rows, columns] = [grid.height, grid.width];
  const pen = prepare(canvas, rows, columns, side);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const color = cellAt(grid, r, c);
      pen.fillStyle = color === PADDING ? look.outside : look.colors[color];
      pen.fillRect(c * side, r * side, side + 1, side + 1);
    }
  }
  drawLines(pen, (r, c) => cellAt(grid, r, c) !== PADDING, rows, columns, side, look.line);
  if (look.numbers && side >= 11) drawNumbers(pen, grid, rows, columns, side, look);
  if (selected) outline(pen, selected, rows, columns, side);
}

/** Draw where a grid is not as its target: two triangles for a wrong cell, a faint one for a right one. */
function drawDifference(canvas, grid, target, side, look) {
  const [rows, columns] = [target.height, target.width];
  const pen = prepare(canvas, rows, columns, side);
  const ground = (color) => (color === PADDING ? look.outside : look.colors[color]);
  const wrong = new Uint8Array(rows * columns);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const [is, should] = [cellAt(grid, r, c), cellAt(target, r, c)];
      const [x, y] = [c * side, r * side];
      if (is === should) {
        pen.fillStyle = is === PADDING ? look.outside : look.right;
        pen.fillRect(x, y, side + 1, side + 1);
        continue;
      }
      wrong[r * columns + c] = 1;
      triangle(pen, ground(is), [x, y], [x + side, y], [x, y + side]);
      triangle(pen, ground(should), [x + side, y], [x + side, y + side], [x, y + side]);
      if (side < 12) continue;
      pen.strokeStyle = look.seam;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(x + side, y);
      pen.lineTo(x, y + side);
      pen.stroke();
    }
  }
  const exists = (r, c) => cellAt(grid, r, c) !== PADDING || cellAt(target, r, c) !== PADDING;
  drawLines(pen, exists, rows, columns, side, look.faintLine);
  outline(pen, wrong, rows, columns, side, look.wrong);
}

function triangle(pen, color, ...corners) {
  pen.fillStyle = color;
  pen.beginPath();
  corners.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
  pen.fill();
}

function drawLines(pen, exists, rows, columns, side, color) {
  pen.strokeStyle = color;
  pen.lineWidth = 1;
  pen.globalAlpha = Math.min(1, side / 14); // small cells would drown in their lines
  pen.beginPath();
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      if (!exists(r, c)) continue;
      const [x, y] = [c * side + 0.5, r * side + 0.5];
      pen.moveTo(x + side, y);
      pen.lineTo(x, y);
      pen.lineTo(x, y + side);
      if (c === columns - 1 || !exists(r, c + 1)) { pen.moveTo(x + side, y); pen.lineTo(x + side, y + side); }
      if (r === rows - 1 || !exists(r + 1, c)) { pen.moveTo(x, y + side); pen.lineTo(x + side, y + side); }
    }
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

function drawNumbers(pen, grid, rows, columns, side, look) {
  pen.font = `${Math.round(side * 0.5)}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const color = cellAt(grid, r, c);
      if (color === PADDING) continue;
      pen.fillStyle = inkOn(look.colors[color]);
      pen.fillText(String(color), (c + 0.5) * side + 0.5, (r + 0.54) * side + 0.5);
    }
  }
}

/** Black or white, whichever stands out more from a color, as palette.py has it. */
function inkOn(color) {
  const shares = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255);
  const [red, green, blue] = shares.map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > Math.sqrt(1.05 * 0.05) - 0.05 ? "#000000" : "#ffffff";
}

/** Stroke the border of a set of cells: dashed black on white, or in one color. */
function outline(pen, cells, rows, columns, side, color = null) {
  const has = (r, c) => r >= 0 && c >= 0 && r < rows && c < columns && cells[r * columns + c] === 1;
  const edges = new Path2D();
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      if (!has(r, c)) continue;
      const [x, y] = [c * side + 0.5, r * side + 0.5];
      const line = (x0, y0, x1, y1) => { edges.moveTo(x0, y0); edges.lineTo(x1, y1); };
      if (!has(r - 1, c)) line(x, y, x + side, y);
      if (!has(r + 1, c)) line(x, y + side, x + side, y + side);
      if (!has(r, c - 1)) line(x, y, x, y + side);
      if (!has(r, c + 1)) line(x + side, y, x + side, y + side);
    }
  }
  pen.lineCap = "square";
  if (color) {
    pen.strokeStyle = color;
    pen.lineWidth = 2;
    pen.stroke(edges);
    return;
  }
  pen.strokeStyle = "#ffffff";
  pen.lineWidth = 3;
  pen.stroke(edges);
  pen.lineCap = "butt";
  pen.strokeStyle = "#000000";
  pen.lineWidth = 1.5;
  pen.setLineDash([4, 3]);
  pen.stroke(edges);
  pen.setLineDash([]);
}
