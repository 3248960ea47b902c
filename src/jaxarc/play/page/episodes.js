// Episodes side by side, all at the same step.

import { drawGrid, fittingCell, make } from "./drawing.js";

const find = (id) => document.getElementById(id);
let episodes = [], timer = null;

/** Show other episodes, at the end of the longest, unless they are being played. */
export function showEpisodes(found) {
  episodes = found;
  find("player").hidden = !episodes.length;
  const most = Math.max(0, ...episodes.map((episode) => episode.actions.length));
  find("step").max = most;
  if (timer === null) find("step").value = most;
  find("episodes").replaceChildren(...episodes.map(card));
  showStep();
}

export function wireEpisodes() {
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
    make("div", { class: "pair" }, make("figure", {}, make("figcaption", {}, "Grid"), make("div", { class: "now" })),
      make("figure", {}, make("figcaption", {}, "Target"), drawGrid(episode.target, "Target", fittingCell(episode.target, 96, 20)))),
    make("p", { class: "last" }));
}

/** Leave out that a task is one of the unseen ones, as all that are shown are. */
export function shortName(task) {
  return task.replace(/^evaluation\//, "");
}

function showStep() {
  const step = find("step").valueAsNumber;
  find("step-number").textContent = `step ${step} of ${find("step").max}`;
  episodes.forEach((episode, index) => {
    const element = find("episodes").children[index], at = Math.min(step, episode.actions.length);
    const grid = episode.grids[at];
    element.querySelector(".now").replaceChildren(drawGrid(grid, `Grid after ${at} steps`, fittingCell(grid, 96, 20)));
    const similarity = `similarity ${Math.round(100 * episode.similarities[at])} %`;
    element.querySelector(".last").textContent = at ? `${at}. ${episode.actions[at - 1]}, ${similarity}` : `start, ${similarity}`;
  });
}
