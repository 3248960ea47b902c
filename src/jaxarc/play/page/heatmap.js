// How tasks go: squares by success rate, and a row of squares for each pair that was shown, one for each checkpoint.

import { make } from "./drawing.js";

/**
 * Draw a square for each task that is not always solved, the hardest first; the one under pointer or focus is named.
 * Solved tasks are counted only, as hundreds of equal squares would say no more.
 */
export function drawSquares(title, tasks) {
  const open = tasks.filter(([, share]) => share !== 1).sort((a, b) => (a[1] ?? -1) - (b[1] ?? -1));
  const untried = open.filter(([, share]) => share === null).length;
  const solved = tasks.length - open.length;
  const summary = [
    solved === tasks.length ? `all ${plain(solved)} always solved` : `${plain(solved)} of ${plain(tasks.length)} always solved`,
    open.length > untried && `${plain(open.length - untried)} with a success rate below 100 %`, untried && `${plain(untried)} never tried`,
  ].filter(Boolean).join(", ");
  const shown = make("p", { class: "summary" }, `${summary[0].toUpperCase()}${summary.slice(1)}.`);
  const heading = make("h3", {}, title);
  if (!open.length) return make("div", {}, heading, shown);
  const squares = open.map(([task, share]) => {
    const square = make("span", { title: `${task}: ${say(share)}` });
    if (share !== null) square.style.backgroundColor = `color-mix(in oklab, var(--high) ${Math.round(100 * share)}%, var(--low))`;
    square.addEventListener("pointerenter", () => { shown.textContent = `${task}: ${say(share)}`; });
    return square;
  });
  return make("div", {}, heading, make("div", { class: "squares", role: "img", "aria-label": `${title}: ${summary}` }, ...squares), shown);
}

/** Draw which of the shown pairs each checkpoint solved. */
export function drawStory(title, names, history) {
  const rows = names.map((name, index) => make("tr", {}, make("th", { scope: "row" }, name),
    ...history.map(({ update, solved }) => make("td", {
      class: solved[index] ? "yes" : null, title: `update ${update}: ${solved[index] ? "solved" : "not solved"}`,
    }, make("span", { class: "unseen" }, solved[index] ? "solved" : "not solved")))));
  const heads = history.map(({ update }) => make("th", { class: "unseen", scope: "col" }, `update ${update}`));
  const head = make("thead", {}, make("tr", {}, make("td", { class: "unseen" }), ...heads));
  return make("div", {}, make("h3", {}, title), make("div", { class: "scroll" }, make("table", { class: "story" }, head, make("tbody", {}, ...rows))));
}

const plain = (number) => number.toLocaleString("en");
const say = (share) => (share === null ? "never tried" : `success rate ${Math.round(100 * share)} %`);
