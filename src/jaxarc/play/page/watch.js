// The live view of a run: asks every second for what is new, and draws it.

import { AXES, chartsOf, drawChart, short, words } from "./curves.js";
import { drawGrid, fittingCell, make } from "./drawing.js";
import { drawSquares, drawStory } from "./heatmap.js";
import { ask } from "./server.js";

const PAUSE = 1000; // milliseconds between two questions
const QUIET = 60; // seconds without a new line, after which a run is not called live
const FIGURES = ["update", "environment_steps", "examples", "evaluation_solve_rate", "train_solve_rate", "game_score", "mean_return", "total_loss", "steps_per_second"];

const find = (id) => document.getElementById(id);
let rows = [], metrics = null, known = { showing: -1, stamp: "" }, tables = null, history = [], shownNames = [];
let newest = 0; // when the last new line came, in milliseconds
let episodes = [], timer = null; // shown side by side, all at the same step

async function look() {
  try {
    take(await ask(`news?${new URLSearchParams(known)}`));
  } catch (error) {
    showState("lost", error.message);
  }
  setTimeout(look, document.hidden ? 5 * PAUSE : PAUSE);
}

function take(news) {
  if (news.metrics) {
    ({ metrics, tables } = news);
    ({ rows } = metrics);
    if (known.stamp) newest = Date.now();
    draw();
  }
  known.stamp = news.stamp;
  if (news.showing && news.showing.number !== known.showing) {
    known.showing = news.showing.number;
    history = news.showing.history;
    if (news.showing.episodes.length) shownNames = news.showing.episodes.map((episode) => shortName(episode.task));
    showEpisodes(news.showing.episodes);
    const solved = news.showing.episodes.filter((episode) => episode.solved).length;
    const counted = news.showing.episodes.length ? `update ${history.at(-1).update}, ${solved} of ${news.showing.episodes.length} solved` : "";
    find("episodes-note").textContent = [counted, news.showing.note].filter(Boolean).join("; ");
    drawTasks();
  } else if (news.tables) drawTasks();
  tellState();
}

function tellState() {
  const isLive = Date.now() - newest < 1000 * QUIET;
  const lines = `${metrics.total.toLocaleString("en")} reports`;
  const odd = unreadable(metrics);
  showState(isLive ? "live" : "", isLive ? `live, ${lines}${odd}` : `${lines}${odd}, none new in the last minute`);
  if (!newest) showState("", `${lines}${odd}`);
}

function showState(kind, text) {
  const state = find("state");
  state.className = `state ${kind}`;
  if (state.textContent !== text) state.textContent = text;
}

function draw() {
  const axis = chooseAxis(), charts = chartsOf(rows);
  find("no-curves").hidden = charts.length > 0;
  const figures = [...find("curves").children];
  charts.forEach((chart, index) => {
    const figure = figures[index] ?? find("curves").appendChild(make("figure"));
    figure.classList.toggle("wide", chart.isShare);
    if (!figure.matches(":hover")) drawChart(figure, chart, rows, axis);
  });
  figures.slice(charts.length).forEach((figure) => figure.remove());
  drawFigures();
}

function chooseAxis() {
  const there = AXES.filter((name) => rows.some((row) => typeof row[name] === "number"));
  const select = find("axis"), chosen = there.includes(select.value) ? select.value : there[0];
  if (select.children.length !== there.length) {
    select.replaceChildren(...there.map((name) => make("option", { value: name }, words(name).toLowerCase())));
    select.value = chosen;
  }
  return chosen ?? "update";
}

function drawFigures() {
  const last = (name) => {
    const found = rows.filter((row) => typeof row[name] === "number");
    if (!found.length) return null;
    const at = found.at(-1).update, together = found.filter((row) => row.update === at);
    return together.reduce((sum, row) => sum + row[name], 0) / together.length;
  };
  const figures = FIGURES.map((name) => [name, last(name)]).filter(([, value]) => value !== null);
  find("figures").replaceChildren(...figures.map(([name, value]) =>
    make("div", {}, make("span", {}, words(name)), make("b", {}, name.endsWith("rate") ? `${(100 * value).toFixed(1)} %` : short(value)))));
}

const unreadable = ({ num_unreadable: count }) => count ? `, ${count} ${count === 1 ? "line" : "lines"} cannot be read` : "";

function drawTasks() {
  const drawn = [];
  if (history.length && shownNames.length) drawn.push(drawStory("Shown pairs, by checkpoint", shownNames, history));
  for (const [title, table] of [["Measured pairs, at the end of the run", tables?.measured], ["Learned tasks, over the whole run", tables?.learned]]) {
    if (table?.rows.length || table?.num_unreadable) drawn.push(drawSquares(title + unreadable(table), table.rows));
  }
  find("heatmaps").replaceChildren(...drawn);
  find("no-tasks").hidden = Boolean(tables?.measured.rows.length || tables?.learned.rows.length);
}

/** Show other episodes, at the end of the longest, unless they are being played. */
function showEpisodes(found) {
  episodes = found;
  find("player").hidden = !episodes.length;
  const most = Math.max(0, ...episodes.map((episode) => episode.actions.length));
  find("step").max = most;
  if (timer === null) find("step").value = most;
  find("episodes").replaceChildren(...episodes.map(card));
  showStep();
}

function wireEpisodes() {
  find("player").hidden = true;
  find("step").addEventListener("input", showStep);
  find("play").addEventListener("click", () => (timer === null ? start() : stop()));
}

function start() {
  const step = find("step");
  if (step.value === step.max) step.value = 0;
  find("play").setAttribute("aria-pressed", "true");
  find("play").textContent = "Pause";
  timer = setInterval(() => {
    if (step.value === step.max) return stop();
    step.value = Number(step.value) + 1;
    showStep();
  }, 450);
  showStep();
}

function stop() {
  clearInterval(timer);
  timer = null;
  find("play").setAttribute("aria-pressed", "false");
  find("play").textContent = "Play";
}

function card(episode) {
  const ending = episode.solved ? make("span", { class: "solved" }, `solved in ${episode.actions.length}`)
    : make("span", { class: "failed" }, "not solved");
  return make("li", {}, make("div", { class: "head" }, make("code", { title: episode.task }, shortName(episode.task)), ending),
    make("div", { class: "pair" }, make("figure", {}, make("figcaption", {}, episode.target ? "Grid" : "Level"), make("div", { class: "now" })),
      ...(episode.target ? [make("figure", {}, make("figcaption", {}, "Target"), drawGrid(episode.target, "Target", fittingCell(episode.target, 96, 20)))] : [])),
    make("p", { class: "last" }));
}

/** Leave out that a task is one of the unseen ones, as all that are shown are. */
function shortName(task) {
  return task.replace(/^evaluation\//, "");
}

function showStep() {
  const step = find("step").valueAsNumber;
  find("step-number").textContent = `step ${step} of ${find("step").max}`;
  episodes.forEach((episode, index) => {
    const element = find("episodes").children[index], at = Math.min(step, episode.actions.length);
    const grid = episode.grids[at];
    element.querySelector(".now").replaceChildren(drawGrid(grid, `Grid after ${at} steps`, fittingCell(grid, 96, 20), episode.target ? "" : "game-"));
    const similarity = episode.target ? `, similarity ${Math.round(100 * episode.similarities[at])} %` : "";
    element.querySelector(".last").textContent = (at ? `${at}. ${episode.actions[at - 1]}` : "start") + similarity;
  });
}

async function begin() {
  wireEpisodes();
  find("axis").addEventListener("change", draw);
  find("palette").addEventListener("change", (event) => document.documentElement.classList.toggle("safe", event.target.value === "safe"));
  const run = await ask("run");
  document.title = `${run.name} – jaxarc watch`;
  find("name").textContent = run.name;
  find("name").title = run.path;
  find("config").replaceChildren(...run.config.map(([name, value]) => make("tr", {}, make("td", {}, name), make("td", {}, value))));
  await look();
}

begin();
