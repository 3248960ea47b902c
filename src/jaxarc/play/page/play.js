// The page for playing: what the player does becomes an action of the environment, what comes back is shown.

import { Board } from "./board.js";
import { COLOR_NAMES, drawGrid, fittingCell, make } from "./drawing.js";
import { describe, listen } from "./keys.js";
import { cellsOf, line, OPERATION, rectangle, toAction, unique, without } from "./selection.js";
import { ask } from "./server.js";

// Numbers and names as people read them.
const percent = (share) => `${(100 * share).toFixed(share < 1 && share > 0.999 ? 2 : 1).replace(/\.0$/, "")} %`;
const signed = (number) => number === 0 ? "0" : `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(3).replace(/0$/, "")}`;
const count = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const sizeOf = (grid) => `${grid.length} × ${grid[0].length}`;
const pairName = (split, pair) => `${split === "test" ? "Test" : "Demonstration"} ${pair + 1}`;

const WHOLE_BY_DEFAULT = new Set(["up", "down", "left", "right", "clockwise", "counterclockwise", "flip-across", "flip-down", "clear"]);
const AREA_ONLY = ["clockwise", "counterclockwise", "flip-across", "flip-down"];
const HAS_KEYS = matchMedia("(pointer: fine)").matches;
const TOOL_HELP = {
  select: { mask: HAS_KEYS ? "Drag over cells; Shift adds, Ctrl takes away." : "Drag over cells.", bbox: "Drag over cells.", point: "Choose a cell." },
  paint: {
    mask: "Drag over cells to paint them, in one action.", bbox: "Drag a box to paint it.", point: "Every cell that you paint is an action.",
  },
  flood: { mask: "Choose a cell; its connected cells change color.", bbox: "Choose a cell; its connected cells change color.", point: "Choose a cell; its connected cells change color." },
};

const find = (id) => document.getElementById(id);
const board = new Board(find("board"), { press, drag, release, cancel, walk, use });
let puzzle, episode; // as the server tells them
let listed = ""; // dataset whose ids the task box offers
let tool = "select", color = 1, selection = [], anchor = [0, 0], stroke = null, hint = null;
let waiting = Promise.resolve();

// ---- talking with the server

/** Do one thing after the other, and tell what went wrong. */
function inTurn(work) {
  waiting = waiting.then(work).catch((error) => say(error.message, true));
  return waiting;
}

function act(operation, cells) {
  return inTurn(() => take(operation, cells, false));
}

/** Take a step; where it follows the selection, the selection then follows what was moved. */
async function take(operation, cells, followsSelection) {
  const before = episode;
  const found = await ask("act", { episode: before.episode, action: toAction(operation, cells, puzzle.format) });
  if (followsSelection && found.board.selected.length && tool === "select") selection = found.board.selected;
  showBoard(found.board);
  const move = episode.moves[episode.in_force - 1];
  const same = JSON.stringify(before.grid) === JSON.stringify(episode.grid)
    && JSON.stringify(before.clipboard) === JSON.stringify(episode.clipboard) && !episode.ending;
  say(`${capital(move.name)}: ${same ? "nothing changes, " : ""}reward ${signed(move.reward)}${
    move.similarity === null ? "" : `, similarity ${percent(move.similarity)}`}.`);
}

/** `where` tells the action to go to when its turn comes: what was done meanwhile counts. */
function rewind(where, words) {
  return inTurn(async () => {
    const to = where();
    if (to < 0 || to > episode.moves.length || to === episode.in_force) return say(`Nothing to ${words.toLowerCase()}.`);
    showBoard((await ask("rewind", { episode: episode.episode, to })).board);
    say(`${words}: ${episode.in_force} of ${episode.moves.length} actions are in force.`);
  });
}

function go(where) {
  return inTurn(async () => {
    showPuzzle(await ask("go", where));
    say(`Task ${puzzle.task}, ${pairName(puzzle.split, puzzle.pair).toLowerCase()}.`);
    // Keys act on the grid again, unless a button that stays was pressed, to be pressed once more.
    if (!document.activeElement.matches("button, select")) board.focus();
    await listTasks();
  });
}

/** Offer the ids of the dataset in the task box. */
async function listTasks() {
  if (listed === puzzle.dataset) return;
  const { tasks } = await ask("tasks");
  listed = puzzle.dataset;
  find("task-ids").replaceChildren(...tasks.map((task) => make("option", { value: task })));
}

function nameTask() {
  const task = find("task").value.trim();
  if (task === puzzle.task) return board.focus();
  say(`Looking for ${task} …`);
  go({ task, split: puzzle.split, pair: 0 });
}

function askHint() {
  return inTurn(async () => {
    say("Looking at the answer …");
    const found = await ask("hint", { episode: episode.episode });
    showBoard(found.board);
    showHint(found);
    say(`Hint from the answer: ${found.words}.`);
  });
}

function save() {
  return inTurn(async () => {
    showBoard((await ask("save", { episode: episode.episode })).board);
    say(episode.file_problem || (episode.file ? `Saved: ${episode.file}` : "There is nothing to save yet."), Boolean(episode.file_problem));
  });
}

// ---- what the player does

function press(cell, event) {
  anchor = cell;
  const adds = puzzle.format === "mask" && event.shiftKey, removes = puzzle.format === "mask" && (event.ctrlKey || event.metaKey);
  stroke = { cells: [cell], last: cell, before: adds || removes ? selection : [], removes };
  drag(cell);
}

function drag(cell) {
  if (!stroke) return;
  const isBox = tool === "select" || puzzle.format === "bbox";
  const reached = puzzle.format === "point" && tool === "select" ? [cell] : rectangle(anchor, cell);
  stroke.cells = isBox ? reached : unique([...stroke.cells, ...line(stroke.last, cell)]);
  stroke.last = cell;
  if (tool === "select") {
    select(stroke.removes ? without(stroke.before, stroke.cells) : unique([...stroke.before, ...stroke.cells]));
  } else if (tool === "paint") {
    board.show(episode.grid);
    board.preview(stroke.cells, color);
  }
}

function release(cell) {
  if (!stroke) return;
  const { cells } = stroke;
  stroke = null;
  if (tool === "flood") act(OPERATION.flood + color, [cell]);
  if (tool === "paint" && puzzle.format === "point") for (const one of cells) act(OPERATION.fill + color, [one]);
  else if (tool === "paint") act(OPERATION.fill + color, cells);
}

function cancel() {
  stroke = null;
  board.show(episode.grid);
}

function walk(cell, extends_) {
  if (tool !== "select") return;
  if (!extends_ || puzzle.format === "point") anchor = cell;
  select(rectangle(anchor, cell));
}

/** Space or Enter on the grid. */
function use() {
  if (tool === "select") return perform("fill");
  act((tool === "flood" ? OPERATION.flood : OPERATION.fill) + color, [board.cursor]);
}

function perform(name) {
  switch (name) {
    case "undo": return rewind(() => episode.in_force - 1, "Undo");
    case "redo": return rewind(() => episode.in_force + 1, "Redo");
    case "reset": return rewind(() => 0, "Reset");
    case "hint": return askHint();
    case "save": return save();
    case "submit": case "copy-input": return act(OPERATION[name], []);
    case "fill": { const operation = OPERATION.fill + color; return inTurn(() => onSelection(operation, name)); }
    default: return inTurn(() => onSelection(OPERATION[name], name)); // moves that come fast follow one another
  }
}

function onSelection(operation, name) {
  let cells = selection;
  if (!cells.length && WHOLE_BY_DEFAULT.has(name) && puzzle.format === "bbox") {
    cells = [[0, 0], [episode.grid.length - 1, episode.grid[0].length - 1]];
  } else if (!cells.length && !(WHOLE_BY_DEFAULT.has(name) && puzzle.format === "mask")) {
    return say(`Select cells first: ${TOOL_HELP.select[puzzle.format]}`, true);
  }
  return take(operation, cells, selection.length > 0);
}

function resize(event) {
  event.preventDefault();
  act(OPERATION.resize, [[find("rows").valueAsNumber - 1, find("columns").valueAsNumber - 1]]);
  board.focus();
}

function select(cells) {
  selection = cells;
  board.select(cells);
  find("selected").textContent = count(cells.length, "cell");
}

function choose(name) {
  tool = name;
  for (const button of document.querySelectorAll("[data-tool]")) button.setAttribute("aria-pressed", button.dataset.tool === name);
  if (tool !== "select") select([]);
  if (puzzle) say(TOOL_HELP[tool][puzzle.format]);
}

function chooseColor(number, focuses = false) {
  color = number;
  [...find("colors").children].forEach((button, index) => {
    button.setAttribute("aria-checked", index === color);
    button.tabIndex = index === color ? 0 : -1;
    if (focuses && index === color) button.focus();
  });
}

function goPair(step) {
  const { train, test } = puzzle.pairs, all = train + test;
  const here = puzzle.pair + (puzzle.split === "test" ? train : 0), next = (here + step + all) % all;
  return go({ task: puzzle.task, split: next < train ? "train" : "test", pair: next < train ? next : next - train });
}

// ---- what is shown

function showPuzzle(found) {
  const isOther = !puzzle || puzzle.task !== found.puzzle.task || puzzle.split !== found.puzzle.split || puzzle.pair !== found.puzzle.pair;
  puzzle = found.puzzle;
  const title = `${puzzle.task} – jaxarc play`;
  if (document.title !== title) find("task").value = puzzle.task; // of the same task it would undo what is being typed
  document.title = title;
  find("task-place").textContent = `${puzzle.number} of ${puzzle.count}, ${puzzle.dataset.split("/").slice(-2).join("/")}`;
  find("welcome").hidden = !puzzle.is_first_visit;
  find("task-place").title = [puzzle.dataset, puzzle.title].filter(Boolean).join(" – ");
  find("format").value = puzzle.format;
  showPairs();
  find("examples").replaceChildren(...puzzle.demonstrations.map(example));
  find("input").replaceChildren(drawGrid(puzzle.input, "Input", fittingCell(puzzle.input, 264, 66)));
  find("input-size").textContent = sizeOf(puzzle.input);
  for (const name of AREA_ONLY) document.querySelector(`[data-do="${name}"]`).disabled = puzzle.format === "point";
  if (isOther) {
    board.cursor = anchor = [0, 0];
    selection = [];
  }
  showBoard(found.board);
}

function showPairs() {
  const all = ["train", "test"].flatMap((split) => Array.from({ length: puzzle.pairs[split] }, (_, pair) => [split, pair]));
  find("pairs").replaceChildren(...all.map(([split, pair]) => {
    const isHere = split === puzzle.split && pair === puzzle.pair;
    const button = make("button", { "aria-current": isHere ? "true" : null, title: pairName(split, pair) },
      split === "test" ? `Test${puzzle.pairs.test > 1 ? ` ${pair + 1}` : ""}` : String(pair + 1));
    button.setAttribute("aria-label", pairName(split, pair));
    button.addEventListener("click", () => go({ task: puzzle.task, split, pair }));
    return button;
  }));
}

function example({ input, output }, index) {
  const size = Math.min(...[input, output].filter(Boolean).map((grid) => fittingCell(grid, 200, 48)));
  const secret = () => make("div", { class: "secret", role: "img", "aria-label": "output to be found" }, "you make this one");
  return make("li", {}, drawGrid(input, `Demonstration ${index + 1}, input`, size), make("span", { class: "arrow", "aria-hidden": "true" }, "→"),
    output ? drawGrid(output, `Demonstration ${index + 1}, output`, size) : secret());
}

function showBoard(found) {
  const isSameState = episode && episode.episode === found.episode && episode.in_force === found.in_force;
  episode = found;
  board.show(episode.grid);
  select(selection.filter(([row, column]) => row < episode.grid.length && column < episode.grid[0].length));
  if (!isSameState) showHint(null);
  find("grid-size").textContent = sizeOf(episode.grid);
  find("rows").value = episode.grid.length;
  find("columns").value = episode.grid[0].length;
  showScore();
  showMoves();
  showEnding();
  find("clipboard").replaceChildren(episode.clipboard
    ? drawGrid(episode.clipboard, "Clipboard", fittingCell(episode.clipboard, 120, 22)) : make("span", { class: "soft" }, "empty"));
  find("file").textContent = episode.file_problem || episode.file || "Saved after your first action.";
  find("file").classList.toggle("problem", Boolean(episode.file_problem));
  document.querySelector('[data-do="undo"]').disabled = episode.in_force === 0;
  document.querySelector('[data-do="reset"]').disabled = episode.in_force === 0;
  document.querySelector('[data-do="redo"]').disabled = episode.in_force === episode.moves.length;
}

function showScore() {
  const isHidden = episode.similarity === null, output = find("similarity");
  output.textContent = isHidden ? "hidden in a test" : percent(episode.similarity);
  output.classList.toggle("words", isHidden);
  find("similarity-bar").hidden = isHidden;
  find("similarity-bar").value = episode.similarity ?? 0;
  find("reward").textContent = episode.reward === null ? "–" : signed(episode.reward);
  find("reward").className = episode.reward > 0 ? "gain" : episode.reward < 0 ? "loss" : "";
  find("return").textContent = signed(episode.return);
  find("steps").textContent = `${episode.steps} of ${episode.most_steps.toLocaleString("en")}`;
  find("hints").textContent = episode.hints;
}

function showMoves() {
  find("moves").replaceChildren(...episode.moves.map(({ name, reward }, index) => {
    const isUndone = index >= episode.in_force;
    const button = make("button", {
      class: isUndone ? "undone" : null, "aria-current": index === episode.in_force - 1 ? "step" : null,
      title: isUndone ? "Do it again" : "Go back to here",
    }, `${index + 1}. ${name}`, make("span", {}, signed(reward)));
    button.addEventListener("click", () => rewind(() => index + 1, "Go to an action"));
    return make("li", {}, button);
  }));
  const list = find("moves"), last = list.children[episode.in_force - 1];
  if (last) list.scrollTop = last.offsetTop - list.clientHeight / 2; // and not scrollIntoView, which moves the whole page
}

function showEnding() {
  const words = {
    solved: `Solved in ${count(episode.in_force, "action")}${episode.hints ? `, with ${count(episode.hints, "hint")}` : ""}. Return ${signed(episode.return)}.`,
    wrong: "Not the answer. Undo the submit and go on.",
    "out of time": "Out of steps. Undo some, or reset.",
  }[episode.ending];
  const ending = find("ending");
  ending.hidden = !words;
  if (!words) return;
  ending.className = `ending ${episode.ending === "solved" ? "solved" : "failed"}`;
  const button = make("button", {}, episode.ending === "solved" ? "Next pair" : "Undo");
  button.addEventListener("click", () => (episode.ending === "solved" ? goPair(1) : perform("undo")));
  ending.replaceChildren(words, button);
}

function showHint(found) {
  hint = found;
  const box = find("hint");
  box.hidden = !hint;
  const isOnCells = hint && ![OPERATION.submit, OPERATION.resize].includes(hint.action[0]) && hint.action.length > 1;
  board.point(isOnCells ? cellsOf(hint.action, puzzle.format) : []);
  if (!hint) return;
  const button = make("button", {}, "Do it");
  button.addEventListener("click", takeHint);
  box.replaceChildren(`From the answer: ${hint.words}. It counts as help.`, button);
}

function takeHint() {
  if (!hint) return say("There is no hint; ask for one with I.");
  const { action } = hint;
  return inTurn(async () => {
    showBoard((await ask("act", { episode: episode.episode, action })).board);
    say(`Done as hinted: ${episode.moves[episode.in_force - 1].name}.`);
  });
}

function say(words, isProblem = false) {
  find("message").textContent = words;
  find("message").classList.toggle("problem", isProblem);
}

// ---- keys and buttons

const does = (name) => () => perform(name);
const toggle = (id) => () => find(id).click();
const KEYS = [
  ["Colors and tools", [
    [["0 … 9"], "Color"],
    [["M"], "Select", () => choose("select")], [["B"], "Paint", () => choose("paint")], [["F"], "Flood fill", () => choose("flood")],
  ]],
  ["Grid", [
    [["Arrows"], "Go to a cell, select it"], [["Shift+Arrows"], "Select more"], [["Ctrl+A"], "Select all", selectAll], [["Escape"], "Select nothing", () => select([])],
  ]],
  ["Selected cells", [
    [["Space"], "Fill with the color", () => (board.cells.contains(document.activeElement) ? use() : perform("fill"))],
    [["Delete", "Backspace"], "Clear", does("clear")], [["C", "Ctrl+C"], "Copy", does("copy")],
    [["X", "Ctrl+X"], "Cut", does("cut")], [["P", "Ctrl+V"], "Paste", does("paste")],
    [["W"], "Move up", does("up")], [["A"], "Move left", does("left")], [["S"], "Move down", does("down")], [["D"], "Move right", does("right")],
    [["E"], "Rotate clockwise", does("clockwise")], [["Q"], "Rotate counter-clockwise", does("counterclockwise")],
    [["H"], "Flip left-right", does("flip-across")], [["V"], "Flip up-down", does("flip-down")],
  ]],
  ["Whole grid", [
    [["G"], "Resize", () => find("rows").select()], [["O"], "Copy input", does("copy-input")],
    [["Z", "Ctrl+Z"], "Undo", does("undo")], [["Y", "Ctrl+Y", "Ctrl+Shift+Z"], "Redo", does("redo")], [["Shift+R"], "Reset", does("reset")],
    [["Shift+Enter"], "Submit", does("submit")], [["Ctrl+S"], "Save", does("save")],
  ]],
  ["Help from the answer", [[["I"], "Hint", does("hint")], [["Shift+I"], "Do what was hinted", takeHint]]],
  ["Tasks", [
    [["N"], "Next task", () => go({ task: "next" })], [["Shift+N"], "Previous task", () => go({ task: "previous" })],
    [["J"], "Random task", () => go({ task: "random" })], [["]"], "Next pair", () => goPair(1)], [["["], "Previous pair", () => goPair(-1)],
    [["/"], "Name a task", () => find("task").select()],
  ]],
  ["Page", [[["?"], "This help", () => find("help").showModal()], [["L"], "Numbers in the cells", toggle("show-numbers")]]],
];

function selectAll() {
  choose("select");
  const last = [episode.grid.length - 1, episode.grid[0].length - 1];
  select(puzzle.format === "point" ? [last] : rectangle([0, 0], last));
}

function wire() {
  COLOR_NAMES.forEach((name, number) => {
    const swatch = make("button", { role: "radio", "aria-label": `${number}, ${name}`, title: `${name} (${number})` }, String(number));
    swatch.style.backgroundColor = `var(--color-${number})`;
    swatch.style.color = `var(--ink-${number})`;
    swatch.addEventListener("click", () => chooseColor(number));
    swatch.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: 9, ArrowUp: 9 }[event.key];
      if (step) { event.preventDefault(); chooseColor((color + step) % 10, true); }
    });
    find("colors").append(swatch);
  });
  chooseColor(color);
  for (const button of document.querySelectorAll("[data-tool]")) button.addEventListener("click", () => choose(button.dataset.tool));
  for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", () => perform(button.dataset.do));
  for (const button of document.querySelectorAll("[data-key]")) {
    const key = button.dataset.key.replace("⇧", "Shift+");
    button.setAttribute("aria-keyshortcuts", key);
    button.title = `${button.title || button.getAttribute("aria-label") || button.textContent} (${key})`;
  }
  find("size").addEventListener("submit", resize);
  for (const whither of ["previous", "next", "random"]) find(`${whither}-task`).addEventListener("click", () => go({ task: whither }));
  find("task").addEventListener("change", nameTask);
  find("task").addEventListener("keydown", (event) => {
    if (event.key === "Escape") find("task").value = puzzle.task;
    if (event.key === "Escape" || event.key === "Enter" && find("task").value.trim() === puzzle.task) board.focus();
  });
  find("format").addEventListener("change", () => {
    say("Compiling the environment for it, the first time …");
    go({ task: puzzle.task, split: puzzle.split, pair: puzzle.pair, format: find("format").value });
  });
  find("open-help").addEventListener("click", () => find("help").showModal());
  find("key-list").replaceChildren(...describe(KEYS, make));
  find("show-numbers").addEventListener("change", (event) => document.body.classList.toggle("numbers", event.target.checked));
  find("safe-colors").addEventListener("change", (event) => document.documentElement.classList.toggle("safe", event.target.checked));
  const digits = COLOR_NAMES.map((_, number) => [[String(number)], "", () => chooseColor(number)]);
  const arrows = ["Up", "Down", "Left", "Right"].map((name) => [[`Arrow${name}`], "", () => board.focus()]);
  listen([...KEYS, ["", [...digits, ...arrows]]], () => find("use-keys").checked);
}

wire();
choose("select");
inTurn(async () => {
  showPuzzle(await ask("game"));
  say(TOOL_HELP.select[puzzle.format]);
  await listTasks();
});
