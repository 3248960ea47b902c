// How tasks go: squares by success rate, and a row of squares for each pair that was shown, one for each checkpoint.

import { make } from "./drawing.js";

/** Draw a square for each task, the harder ones first; the one under pointer or focus is told in words. */
export function drawSquares(title, tasks) {
  const told = make("p", { class: "told" }, "");
  const sorted = [...tasks].sort((a, b) => (a[1] ?? -1) - (b[1] ?? -1));
  const squares = sorted.map(([task, share]) => {
    const square = make("span", { title: `${task}: ${say(share)}` });
    if (share !== null) square.style.backgroundColor = `color-mix(in oklab, var(--high) ${Math.round(100 * share)}%, var(--low))`;
    square.addEventListener("pointerenter", () => { told.textContent = `${task}: ${say(share)}`; });
    return square;
  });
  const known = tasks.filter((task) => task[1] !== null);
  const solved = known.filter((task) => task[1] >= 0.5).length;
  const summary = `${title}: ${tasks.length} tasks, ${solved} of them solved at least every second time, ${tasks.length - known.length} never tried`;
  told.textContent = `${tasks.length} tasks from hardest to easiest; ${solved} solved at least every second time.`;
  return make("div", {}, make("h3", {}, title), make("div", { class: "squares", role: "img", "aria-label": summary }, ...squares), told);
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

const say = (share) => (share === null ? "never tried" : `${Math.round(100 * share)} % solved`);
