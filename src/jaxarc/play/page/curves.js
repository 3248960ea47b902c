// Curves over the course of a run: every seed a thin line, their mean a thick one.

import { make } from "./drawing.js";

const SMALL = { width: 360, height: 178 }, LARGE = { width: 740, height: 428 };
const LEFT = 40, RIGHT = 8, TOP = 8, BOTTOM = 32;
export const AXES = ["environment_steps", "examples", "step", "update", "seconds"];
const NOT_DRAWN = new Set([...AXES, "seed"]);

/** Sort the names of columns into charts; what is a share of solved tasks shares one. */
export function chartsOf(rows) {
  const names = new Set();
  for (const row of rows) for (const [name, value] of Object.entries(row)) if (value !== null && !NOT_DRAWN.has(name)) names.add(name);
  const rates = [...names].filter((name) => name.endsWith("solve_rate"));
  const others = [...names].filter((name) => !name.endsWith("solve_rate"));
  return [...(rates.length ? [{ title: "Solve rate", names: rates.sort(), isShare: true }] : []), ...others.map((name) => ({ title: words(name), names: [name], isShare: false }))];
}

export function words(name) {
  const text = name.replaceAll("_", " ");
  return text[0].toUpperCase() + text.slice(1);
}

/** Draw a chart into a figure, or draw it anew. */
export function drawChart(figure, chart, rows, axis) {
  const series = chart.names.map((name) => ({ name, ...linesOf(rows, name, axis) }));
  const xs = rows.map((row) => row[axis]).filter((value) => value !== null && value !== undefined);
  const ys = series.flatMap((one) => one.seeds.flatMap((line) => line.map((point) => point[1])));
  const size = chart.isShare ? LARGE : SMALL, from = least(xs), to = most(xs);
  const values = chart.isShare ? [0, 0.25, 0.5, 0.75, 1] : ticks(least(ys), most(ys));
  const x = scale(from, to, LEFT, size.width - RIGHT);
  const y = scale(values[0], values.at(-1), size.height - BOTTOM, TOP);
  const picture = make("svg", { viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": describe(chart, series, axis) });
  picture.append(frame(size, values, ticks(from, to).filter((at) => from <= at && at <= to), x, y, chart.isShare, axis));
  series.forEach((one, index) => {
    const group = make("g", {});
    group.style.setProperty("--series", `var(--series-${index % 4})`);
    if (one.seeds.length > 1) for (const line of one.seeds) group.append(make("path", { class: "seed", d: pathOf(line, x, y) }));
    group.append(make("path", { class: "mean", d: pathOf(one.mean, x, y) }));
    if (one.mean.length === 1) group.append(make("circle", { class: "dot", cx: x(one.mean[0][0]), cy: y(one.mean[0][1]), r: 3 }));
    picture.append(group);
  });
  const tell = (at) => readingAt(series, at, axis, chart.isShare);
  const reading = make("p", { class: "reading" }, tell(to));
  figure.replaceChildren(caption(chart, series), picture, reading);
  follow(picture, size, series[0].mean, x, (at) => { reading.textContent = tell(at ?? to); });
}

/** The curves of one column: for each seed and for their mean, points [x, y]. */
function linesOf(rows, name, axis) {
  const seeds = new Map(), moments = new Map();
  for (const row of rows) {
    const at = row[axis], value = row[name];
    if (at === null || at === undefined || value === null || value === undefined) continue;
    if (!seeds.has(row.seed)) seeds.set(row.seed, []);
    seeds.get(row.seed).push([at, value]);
    const key = row.update ?? at;
    if (!moments.has(key)) moments.set(key, []);
    moments.get(key).push([at, value]);
  }
  const average = (points, index) => points.reduce((sum, point) => sum + point[index], 0) / points.length;
  return { seeds: [...seeds.values()], mean: [...moments.values()].map((points) => [average(points, 0), average(points, 1)]) };
}

function caption(chart, series) {
  const parts = [make("span", {}, chart.title)];
  if (series.length > 1) {
    series.forEach((one, index) => {
      const key = make("span", { class: "key soft" }, words(one.name.replace("_solve_rate", "")));
      key.style.setProperty("--series", `var(--series-${index % 4})`);
      parts.push(key);
    });
  }
  return make("figcaption", {}, ...parts);
}

function frame({ width, height }, values, xValues, x, y, isShare, axis) {
  const group = make("g", {});
  for (const value of values) {
    group.append(make("path", { class: "frame", d: `M${LEFT} ${y(value)}H${width - RIGHT}` }));
    group.append(make("text", { x: LEFT - 5, y: y(value) + 3, "text-anchor": "end" }, say(value, isShare)));
  }
  const bottom = height - BOTTOM;
  for (const at of xValues) {
    group.append(make("path", { class: "frame", d: `M${x(at)} ${bottom}v4` }));
    const anchor = x(at) > width - 3 * RIGHT ? "end" : "middle";
    group.append(make("text", { x: x(at), y: bottom + 14, "text-anchor": anchor }, short(at)));
  }
  group.append(make("text", { class: "axis-name", x: width - RIGHT, y: height - 3, "text-anchor": "end" }, axis.replaceAll("_", " ")));
  return group;
}

/** Write the values under the pointer; clear them when it leaves. */
function follow(picture, { width, height }, points, x, tell) {
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    const nearest = points.reduce((best, point) => (Math.abs(x(point[0]) - at) < Math.abs(x(best[0]) - at) ? point : best), points[0]);
    picture.querySelector(".hand")?.remove();
    picture.append(make("path", { class: "hand", d: `M${x(nearest[0])} ${TOP}V${height - BOTTOM}` }));
    tell(nearest[0]);
  });
  picture.addEventListener("pointerleave", () => {
    picture.querySelector(".hand")?.remove();
    tell(null);
  });
}

function readingAt(series, at, axis, isShare) {
  const values = series.map((one) => {
    const found = one.mean.filter((point) => point[0] <= at).at(-1);
    const name = series.length > 1 ? `${one.name.replace("_solve_rate", "")} ` : "";
    return found && `${name}${say(found[1], isShare)}`;
  });
  return `${short(at)} ${axis.replaceAll("_", " ")}: ${values.filter(Boolean).join(", ")}`;
}

function describe(chart, series, axis) {
  const written = (value) => say(value, chart.isShare);
  const parts = series.map((one) => {
    const values = one.mean.map((point) => point[1]);
    return `${words(one.name)}: now ${written(values.at(-1))}, lowest ${written(least(values))}, highest ${written(most(values))}`;
  });
  return `${chart.title} over ${axis.replaceAll("_", " ")}. ${parts.join(". ")}.`;
}

function scale(from, to, start, end) {
  const span = to - from || 1;
  return (value) => start + ((value - from) / span) * (end - start);
}

/** Round values that reach around a range, three to six of them. */
function ticks(low, high) {
  const span = high - low || Math.abs(high) || 1, rough = span / 3, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((one) => one >= rough);
  const first = Math.floor(low / step + 1e-9), last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
}

const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
const say = (value, isShare) => (isShare ? `${Number((100 * value).toFixed(1))} %` : short(value));

function pathOf(points, x, y) {
  return points.map(([at, value], index) => `${index ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
}

export function short(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0) return `−${short(-value)}`;
  const size = value;
  if (size >= 1e6) return `${Number((value / 1e6).toFixed(size >= 1e8 ? 0 : 1))} M`;
  if (size >= 1e4) return `${Number((value / 1e3).toFixed(size >= 1e5 ? 0 : 1))} k`;
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return size < 0.001 ? value.toExponential(1).replace(".0", "") : String(Number(value.toPrecision(3)));
}
