// The page: which episode and step are shown, and what changes them.

const byId = (id) => document.getElementById(id);
const view = { episodeIndex: -1, episode: null, task: null, step: 0, timer: null, loading: 0 };
let list, similarityCurve, rewardCurve, actionRows, marked, savingAddress;

function start() {
  if (typeof DecompressionStream === "undefined") {
    fail("This browser cannot unpack the episodes; use Chrome 80, Firefox 113, Safari 16.4 or a later one.");
    return;
  }
  byId("title").textContent = index.title;
  byId("about").textContent = Object.entries(index.about).map(([name, value]) => `${name}: ${value}`).join(" · ");
  recallLook();
  similarityCurve = new Curve(byId("similarity"), (step) => { pause(); goTo(step); });
  rewardCurve = new Curve(byId("reward"), (step) => { pause(); goTo(step); });
  list = new EpisodeList((episodeIndex) => {
    open(episodeIndex, 0);
    if (window.innerWidth <= 760) byId("stage").scrollIntoView(); // on a phone the list is far below the grids
  });
  listen();
  followLink();
}

function listen() {
  byId("first").addEventListener("click", () => { pause(); goTo(0); });
  byId("back").addEventListener("click", () => { pause(); goTo(view.step - 1); });
  byId("play").addEventListener("click", () => (view.timer ? pause() : play()));
  byId("forward").addEventListener("click", () => { pause(); goTo(view.step + 1); });
  byId("last").addEventListener("click", () => { pause(); goTo(Infinity); });
  byId("slider").addEventListener("input", (event) => { pause(); goTo(Number(event.target.value)); });
  byId("speed").addEventListener("change", () => { if (view.timer) { pause(); play(); } });
  byId("open-help").addEventListener("click", () => byId("help").showModal());
  for (const id of ["palette", "numbers", "theme"]) byId(id).addEventListener("change", changeLook);
  byId("as-text").addEventListener("toggle", showTexts);
  window.addEventListener("hashchange", followLink);
  window.addEventListener("keydown", press);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let pending = 0;
  window.addEventListener("resize", () => { cancelAnimationFrame(pending); pending = requestAnimationFrame(redraw); });
}

// Which episode

function followLink() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const episodeIndex = clamp(Math.round(Number(wanted.get("episode") || 1)) - 1, 0, episodes.length - 1);
  const step = Math.round(Number(wanted.get("step") || 0));
  if (episodeIndex === view.episodeIndex && view.episode) goTo(step);
  else open(episodeIndex, step);
}

async function open(episodeIndex, step) {
  pause();
  const mine = ++view.loading;
  try {
    const [episode, task] = await Promise.all([loadEpisode(episodeIndex), loadTask(episodes[episodeIndex].task)]);
    if (mine !== view.loading) return; // another one was chosen meanwhile
    const sameTask = view.task === task;
    Object.assign(view, { episodeIndex, episode, task, step: clamp(step, 0, episode.actions.length) });
    list.choose(episodeIndex);
    showHeading();
    if (!sameTask) showDemonstrations();
    listActions();
    byId("slider").max = String(episode.actions.length);
    redraw();
    say(`Episode ${episodeIndex + 1}, task ${task.id}, ${episodes[episodeIndex].solved ? "solved" : "failed"}, ${episode.actions.length} actions`);
  } catch (error) {
    fail(`Episode ${episodeIndex + 1} cannot be unpacked (${error.message}); make the file again.`);
  }
}

function showHeading() {
  const facts = episodes[view.episodeIndex];
  byId("task").textContent = view.task.title ? `${view.task.id} · ${view.task.title}` : view.task.id;
  byId("pair").textContent = facts.pair;
  byId("badge").textContent = facts.solved ? "solved" : "failed";
  byId("badge").className = `badge ${facts.solved ? "solved" : "failed"}`;
  byId("player").textContent = `episode ${view.episodeIndex + 1} of ${episodes.length} · ${facts.player}`;
  document.title = `${view.task.id} · ${index.title}`;
}

function listActions() {
  const { episode } = view;
  const rows = [actionRow(0, "start", "", "", episode.similarities[0])];
  episode.actions.forEach((action, i) => {
    const name = nameOf(action) + (episode.invalid.has(i) ? " (refused)" : "");
    rows.push(actionRow(i + 1, name, whereOf(episode, action), signed(episode.rewards[i]), episode.similarities[i + 1]));
  });
  actionRows = rows.map((row) => row.firstChild);
  byId("actions").replaceChildren(...rows);
}

function actionRow(step, name, where, reward, similarity) {
  const row = make("li", "");
  const button = make("button", "act", "", { type: "button" });
  const spoken = (word) => make("span", "hidden", `${word} `);
  const [number, paid, near] = [make("span", "number"), make("span", "paid"), make("span", "near")];
  number.append(spoken("step"), String(step));
  if (reward) paid.append(spoken("reward"), reward);
  near.append(spoken("similarity"), percent(similarity));
  button.append(number, make("span", "what", name), make("span", "where", where), paid, near);
  button.addEventListener("click", () => { pause(); goTo(step); });
  row.append(button);
  return row;
}

// Which step

function goTo(step) {
  if (!view.episode) return;
  view.step = clamp(Math.round(step), 0, view.episode.actions.length);
  showStep();
  if (!view.timer) say(sentence());
}

function play() {
  if (!view.episode) return;
  if (view.step >= view.episode.actions.length) goTo(0);
  view.timer = setInterval(() => {
    goTo(view.step + 1);
    if (view.step >= view.episode.actions.length) { pause(); say(sentence()); }
  }, 1000 / Number(byId("speed").value));
  byId("play").setAttribute("aria-label", "Pause");
  byId("play-icon").setAttribute("d", "M4 3h3v10H4zM9 3h3v10H9z");
}

function pause() {
  if (!view.timer) return;
  clearInterval(view.timer);
  view.timer = null;
  byId("play").setAttribute("aria-label", "Play");
  byId("play-icon").setAttribute("d", "M4 2.5v11l9-5.5z");
}

function sentence() {
  const { episode, step } = view;
  const total = episode.actions.length;
  const near = `similarity ${percent(episode.similarities[step])}`;
  if (!step) return `Start of ${total} steps, ${near}`;
  const action = episode.actions[step - 1];
  const refused = episode.invalid.has(step - 1) ? ", refused" : "";
  return `Step ${step} of ${total}: ${phraseOf(episode, action)}${refused}; reward ${signed(episode.rewards[step - 1])}, ${near}`;
}

function showStep() {
  const { episode, step } = view;
  const [grid, target] = [episode.grids[step], episode.target];
  const selected = step ? episode.selections[step - 1] : null;
  const look = currentLook();
  drawGrid(byId("working"), grid, view.side, look, selected);
  drawDifference(byId("difference"), grid, target, view.side, look);
  const wrong = countWrong(grid, target);
  byId("wrong").textContent = wrong ? `${wrong} cell${wrong === 1 ? "" : "s"}` : "none";
  byId("working").setAttribute("aria-label", `Working grid, ${describe(grid, index.colors)}`);
  byId("difference").setAttribute("aria-label", wrong ? `${wrong} cells differ from the target` : "As the target");
  showClipboard(clipboardAt(episode, step), look);
  byId("slider").value = String(step);
  byId("slider").setAttribute("aria-valuetext", sentence());
  byId("position").textContent = `${step} / ${episode.actions.length}`;
  byId("action").textContent = sentence();
  byId("similarity-now").textContent = percent(episode.similarities[step]);
  byId("reward-now").textContent = signed(episode.totals[step]);
  similarityCurve.show(step);
  rewardCurve.show(step);
  markAction(step);
  if (byId("as-text").open) showTexts();
  saveAddress();
}

function markAction(step) {
  const button = actionRows[step];
  if (marked) marked.removeAttribute("aria-current");
  marked = button;
  marked.setAttribute("aria-current", "step");
  const box = byId("actions");
  const [top, bottom] = [button.offsetTop - box.offsetTop, button.offsetTop - box.offsetTop + button.offsetHeight];
  if (top < box.scrollTop) box.scrollTop = top;
  else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}

function showClipboard(held, look) {
  byId("clipboard-figure").hidden = !view.episode.clipboards.length;
  if (held) drawGrid(byId("clipboard"), held, view.side, look);
  else drawGrid(byId("clipboard"), { height: 1, width: 1, cells: new Int8Array([PADDING]) }, view.side, look);
  byId("clipboard").setAttribute("aria-label", held ? `Clipboard, ${describe(held, index.colors)}` : "Clipboard, empty");
}

function showTexts() {
  if (!view.episode) return;
  byId("working-text").textContent = textOf(view.episode.grids[view.step]);
  byId("target-text").textContent = textOf(view.episode.target);
}

/** Keep the address in step, not more often than browsers allow. */
function saveAddress() {
  if (location.protocol === "about:") return; // inside a notebook's frame the page has no address
  clearTimeout(savingAddress);
  savingAddress = setTimeout(() => {
    history.replaceState(null, "", `#episode=${view.episodeIndex + 1}&step=${view.step}`);
  }, 150);
}

// How it looks

function redraw() {
  if (!view.episode) return;
  const { episode } = view;
  const { height, width } = episode.target;
  const box = byId("working").closest("figure").clientWidth - 2;
  const room = window.innerWidth < 700 ? 300 : 340;
  view.side = clamp(Math.floor(Math.min(box / width, room / height, 40)), 3, 40);
  const look = currentLook();
  drawGrid(byId("input"), episode.grids[0], view.side, look);
  drawGrid(byId("target"), episode.target, view.side, look);
  byId("input").setAttribute("aria-label", `Input, ${describe(episode.grids[0], index.colors)}`);
  byId("target").setAttribute("aria-label", `Target, ${describe(episode.target, index.colors)}`);
  similarityCurve.draw(episode.similarities, [0, 1], (share) => `${100 * share} %`);
  const low = Math.min(0, ...episode.totals);
  const high = Math.max(0, ...episode.totals);
  rewardCurve.draw(episode.totals, low === high ? [0, 1] : [low, high], signed);
  showDemonstrations();
  showStep();
}

function showDemonstrations() {
  const section = byId("demonstrations");
  const look = currentLook();
  const pairs = view.task.demonstrations.map(([input, output], i) => {
    const side = clamp(Math.floor(Math.min(104 / Math.max(input.height, output.height), 130 / Math.max(input.width, output.width), 16)), 3, 16);
    const figure = make("figure", "demonstration");
    const [left, right] = [make("canvas", "", "", { role: "img" }), make("canvas", "", "", { role: "img" })];
    drawGrid(left, input, side, look);
    drawGrid(right, output, side, look);
    left.setAttribute("aria-label", `Demonstration train ${i}, input, ${describe(input, index.colors)}`);
    right.setAttribute("aria-label", `Demonstration train ${i}, output, ${describe(output, index.colors)}`);
    const row = make("div", "row");
    row.append(left, make("span", "arrow", "→", { "aria-hidden": "true" }), right);
    figure.append(row, make("figcaption", "", `train ${i}`));
    return figure;
  });
  section.hidden = !pairs.length;
  section.replaceChildren(...pairs);
}

function currentLook() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  return {
    colors: index.palettes[byId("palette").value],
    numbers: byId("numbers").checked,
    line: color("--cell-line"),
    faintLine: color("--faint-line"),
    outside: color("--outside"),
    right: color("--right"),
    seam: color("--seam"),
    wrong: color("--wrong"),
  };
}

function changeLook() {
  document.documentElement.dataset.theme = byId("theme").value;
  const chosen = { palette: byId("palette").value, numbers: byId("numbers").checked, theme: byId("theme").value };
  try {
    localStorage.setItem("jaxarc-replay", JSON.stringify(chosen));
  } catch {
    // Some browsers keep nothing for files; the choice then lasts as long as the page.
  }
  redraw();
}

function recallLook() {
  try {
    const chosen = JSON.parse(localStorage.getItem("jaxarc-replay") || "{}");
    if (chosen.palette in index.palettes) byId("palette").value = chosen.palette;
    if (["auto", "light", "dark"].includes(chosen.theme)) byId("theme").value = chosen.theme;
    byId("numbers").checked = chosen.numbers === true;
  } catch {
    // as above
  }
  document.documentElement.dataset.theme = byId("theme").value;
}

// Keys and words

function press(event) {
  const field = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (field.matches("input[type=search], select")) return;
  const slides = field.matches("input[type=range]");
  const steps = { ArrowLeft: () => goTo(view.step - 1), ArrowRight: () => goTo(view.step + 1), Home: () => goTo(0), End: () => goTo(Infinity) };
  const letters = {
    " ": () => (view.timer ? pause() : play()),
    n: () => list.move(1),
    p: () => list.move(-1),
    "/": () => list.search.focus(),
    "?": () => byId("help").showModal(),
  };
  if (event.key in steps && !slides) {
    pause();
    act(event, steps[event.key]);
  } else if (event.key.toLowerCase() in letters && byId("letters").checked && !(event.key === " " && field.matches("button, summary, input"))) {
    act(event, letters[event.key.toLowerCase()]);
  }
}

function act(event, action) {
  event.preventDefault();
  action();
}

function say(words) {
  byId("said").textContent = words;
}

function fail(words) {
  byId("failure").hidden = false;
  byId("failure").textContent = words;
}

function clamp(number, low, high) {
  return Number.isNaN(number) ? low : Math.min(high, Math.max(low, number));
}

start();
