// The grid that is worked on: cells to look at, to drag over and to walk through with the arrow keys.

import { border, COLOR_NAMES, make } from "./drawing.js";

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export class Board {
  /**
   * Fill an element. Handlers: press(cell, event), drag(cell), release(cell), cancel(), walk(cell, extends), use().
   */
  constructor(element, handlers) {
    this.handlers = handlers;
    this.cells = make("div", { class: "cells", role: "grid", "aria-label": "Your grid", "aria-multiselectable": "true" });
    this.over = make("svg", { class: "over", "aria-hidden": "true", preserveAspectRatio: "none" });
    for (const name of ["under", "dashes", "hint-under", "hint-line"]) this.over.append(make("path", { class: name }));
    element.append(this.cells, this.over);
    this.element = element;
    this.cursor = [0, 0];
    this.grid = [[]];
    this.selected = [];
    this.cells.addEventListener("pointerdown", (event) => this.#press(event));
    this.cells.addEventListener("pointermove", (event) => this.#isDown(event) && handlers.drag(this.#cellAt(event)));
    this.cells.addEventListener("pointerup", (event) => this.#isDown(event) && handlers.release(this.#cellAt(event)));
    this.cells.addEventListener("pointercancel", () => handlers.cancel());
    this.cells.addEventListener("keydown", (event) => this.#walk(event));
  }

  /** Show a grid; cells that stay are changed in place, so that the focus stays where it is. */
  show(grid) {
    const rows = grid.length, columns = grid[0].length;
    const had = this.cells.contains(document.activeElement);
    if (rows !== this.grid.length || columns !== this.grid[0].length) {
      this.element.style.setProperty("--rows", rows);
      this.element.style.setProperty("--columns", columns);
      this.over.setAttribute("viewBox", `0 0 ${columns} ${rows}`);
      this.cells.replaceChildren(...grid.map((line, row) => make("div", { role: "row" },
        ...line.map((_, column) => make("div", { class: "cell", role: "gridcell", tabindex: "-1", id: `cell-${row}-${column}` })))));
    }
    this.grid = grid;
    grid.forEach((line, row) => line.forEach((color, column) => this.#paint(row, column, color)));
    this.#moveCursor([Math.min(this.cursor[0], rows - 1), Math.min(this.cursor[1], columns - 1)], had);
    this.select(this.selected);
  }

  /** Outline these cells; those outside the grid are not shown. */
  select(cells) {
    for (const [row, column] of this.selected) this.#at(row, column)?.setAttribute("aria-selected", "false");
    this.selected = cells.filter(([row, column]) => this.#at(row, column));
    for (const [row, column] of this.selected) this.#at(row, column).setAttribute("aria-selected", "true");
    this.#outline(["under", "dashes"], this.selected);
  }

  /** Outline what a hint is about. */
  point(cells) {
    this.#outline(["hint-under", "hint-line"], cells.filter(([row, column]) => this.#at(row, column)));
  }

  /** Show a color in some cells before it is really there. */
  preview(cells, color) {
    for (const [row, column] of cells) if (this.#at(row, column)) this.#paint(row, column, color);
  }

  focus() {
    this.#moveCursor(this.cursor, true);
  }

  #press(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.cells.setPointerCapture(event.pointerId);
    const cell = this.#cellAt(event);
    this.#moveCursor(cell, true);
    this.handlers.press(cell, event);
  }

  #isDown(event) {
    return this.cells.hasPointerCapture(event.pointerId);
  }

  #walk(event) {
    const step = ARROWS[event.key];
    if (step && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      const [rows, columns] = [this.grid.length, this.grid[0].length];
      const clamp = (value, most) => Math.max(0, Math.min(most - 1, value));
      this.#moveCursor([clamp(this.cursor[0] + step[0], rows), clamp(this.cursor[1] + step[1], columns)], true);
      this.handlers.walk(this.cursor, event.shiftKey);
    } else if ((event.key === " " || event.key === "Enter") && !event.shiftKey && !event.ctrlKey) {
      event.preventDefault();
      event.stopPropagation();
      this.handlers.use();
    }
  }

  #moveCursor(cell, focuses) {
    this.#at(...this.cursor)?.setAttribute("tabindex", "-1");
    this.cursor = cell;
    this.#at(...cell).setAttribute("tabindex", "0");
    if (focuses) this.#at(...cell).focus({ preventScroll: true });
  }

  #cellAt(event) {
    const box = this.cells.getBoundingClientRect();
    const indexAt = (at, size, count) => Math.max(0, Math.min(count - 1, Math.floor((at / size) * count)));
    return [
      indexAt(event.clientY - box.top, box.height, this.grid.length),
      indexAt(event.clientX - box.left, box.width, this.grid[0].length),
    ];
  }

  #at(row, column) {
    return this.cells.children[row]?.children[column];
  }

  #paint(row, column, color) {
    const cell = this.#at(row, column);
    if (cell.dataset.color === String(color)) return;
    cell.dataset.color = color;
    cell.style.backgroundColor = `var(--color-${color})`;
    cell.style.color = `var(--ink-${color})`;
    cell.setAttribute("aria-label", `row ${row}, column ${column}: ${COLOR_NAMES[color]}`);
  }

  #outline(names, cells) {
    const path = border(cells);
    for (const name of names) this.over.querySelector(`.${name}`).setAttribute("d", path);
  }
}
