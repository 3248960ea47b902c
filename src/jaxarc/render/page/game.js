// Frames of a game: played through the server that sent this page, or stepped through in a recording.

const COLORS = {colors};
const NAMES = ["reset", "up", "down", "left", "right", "act", "click", "undo"];
const KEYS = { arrowup: 1, w: 1, arrowdown: 2, s: 2, arrowleft: 3, a: 3, arrowright: 4, d: 4, " ": 5, z: 7, r: 0 };
const ARROWS = { 1: "\u2191", 2: "\u2193", 3: "\u2190", 4: "\u2192", 5: "act" };
const SWIPE = 24; // CSS pixels from which a touch is a swipe and no tap
const PAUSE = 120; // milliseconds between the frames of one action
const byId = (id) => document.getElementById(id);
const canvas = byId("frame");
const recording = byId("recording");

/** Draw a frame: 64 rows of 64 hexadecimal digits. */
function draw(frame, click) {
  const pen = canvas.getContext("2d");
  frame.forEach((row, y) => [...row].forEach((digit, x) => {
    pen.fillStyle = COLORS[parseInt(digit, 16)];
    pen.fillRect(x * 8, y * 8, 8, 8);
  }));
  if (click) {
    pen.strokeStyle = "#fff";
    pen.lineWidth = 3;
    pen.strokeRect(click[0] * 8 - 4, click[1] * 8 - 4, 16, 16);
  }
}

function button(text, work, home = "controls") {
  const made = document.createElement("button");
  made.textContent = text;
  made.addEventListener("click", work);
  byId(home).append(made);
  return made;
}

/** Show which levels are completed, and which one is played. */
function showLevels({ completed, levels }) {
  byId("levels").replaceChildren(...Array.from({ length: levels }, (_, level) => Object.assign(document.createElement("li"), {
    className: level < completed ? "done" : level === completed ? "now" : "",
  })));
}

function say(seen, more) {
  showLevels(seen);
  byId("state").textContent = `${more}, ${seen.completed} of ${seen.levels} levels, ${seen.state.toLowerCase().replace("_", " ")}`;
}

/** Step through a recording: one entry for each frame. */
function replay({ name, steps }) {
  byId("name").textContent = name;
  byId("help").textContent = "Arrow keys step through the recording; space plays it.";
  const shown = steps.flatMap((step, index) => step.frames.map((frame) => ({ ...step, frame, index })));
  const slider = Object.assign(document.createElement("input"), { type: "range", min: 0, max: shown.length - 1, value: 0 });
  slider.setAttribute("aria-label", "Frame");
  let timer = null;
  const go = (to) => {
    slider.value = Math.max(0, Math.min(shown.length - 1, to));
    const one = shown[Number(slider.value)];
    draw(one.frame, one.action === 6 ? [one.x, one.y] : null);
    say(one, `action ${one.index + 1} of ${steps.length}: ${NAMES[one.action]}`);
    if (Number(slider.value) === shown.length - 1) stop();
  };
  const stop = () => { clearInterval(timer); timer = null; };
  const move = (by) => { stop(); go(Number(slider.value) + by); };
  const play = () => { if (timer) stop(); else timer = setInterval(() => go(Number(slider.value) + 1), 2 * PAUSE); };
  button("Back", () => move(-1));
  button("Play", play);
  button("Forward", () => move(1));
  byId("controls").append(slider);
  slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
  document.addEventListener("keydown", (event) => {
    if (event.target !== slider && event.key === "ArrowRight") move(1);
    else if (event.target !== slider && event.key === "ArrowLeft") move(-1);
    else if (event.key === " " && event.target.tagName !== "BUTTON") play();
    else return;
    event.preventDefault();
  });
  go(0);
}

/** Play: every key and click is an action, one after the other. */
async function live() {
  const { ask } = await import("./server.js");
  let work = Promise.resolve();
  const show = async (seen) => {
    for (const [index, frame] of seen.frames.entries()) {
      if (index) await new Promise((done) => setTimeout(done, PAUSE));
      draw(frame);
    }
    say(seen, `${seen.actions} actions, score ${seen.score}`);
    byId("count").textContent = `Level ${seen.level + 1}: ${seen.level_actions} actions${seen.best ? `, best ${seen.best}` : ""}`;
  };
  const act = (action, x = 0, y = 0) => {
    work = work.then(() => ask("act", { action, x, y })).then(show)
      .catch((error) => { byId("state").textContent = error.message; });
  };
  const first = await ask("look");
  byId("name").textContent = first.name;
  const has = (action) => first.available.includes(action);
  const moves = has(1) || has(2) || has(3) || has(4);
  byId("help").textContent = [
    moves && "arrow keys and swipes move", has(5) && "space acts", has(6) && "a click or a tap picks a cell",
    has(7) && "Z takes back", "R restarts the level",
  ].filter(Boolean).join(", ").replace(/^./, (letter) => letter.toUpperCase()) + `. Saved in ${first.file}`;
  for (const action of [...first.available, 0]) {
    if (moves && ARROWS[action]) {
      const made = button(ARROWS[action], () => act(action), "cross");
      made.className = NAMES[action];
      made.setAttribute("aria-label", NAMES[action]);
    } else if (action !== 6) button(NAMES[action], () => act(action));
  }
  document.addEventListener("keydown", (event) => {
    const action = KEYS[event.key.toLowerCase()];
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && event.target.tagName === "BUTTON") return;
    event.preventDefault();
    act(action);
  });
  let start = null; // where a finger touched the frame
  let swiped = false;
  canvas.classList.toggle("swiped", moves);
  canvas.addEventListener("pointerdown", (event) => {
    start = event.pointerType === "mouse" ? null : [event.clientX, event.clientY];
    swiped = false;
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!start || !moves) return;
    const [right, down] = [event.clientX - start[0], event.clientY - start[1]];
    swiped = Math.max(Math.abs(right), Math.abs(down)) >= SWIPE;
    const action = Math.abs(right) > Math.abs(down) ? (right < 0 ? 3 : 4) : (down < 0 ? 1 : 2);
    if (swiped && has(action)) act(action);
  });
  canvas.addEventListener("click", (event) => {
    if (swiped || !has(6)) return;
    const box = canvas.getBoundingClientRect();
    const cell = (at, from, size) => Math.max(0, Math.min(63, Math.floor(((at - from) * 64) / size)));
    act(6, cell(event.clientX, box.left, box.width), cell(event.clientY, box.top, box.height));
  });
  await show(first);
}

if (recording) replay(JSON.parse(recording.textContent));
else live().catch((error) => { byId("state").textContent = error.message; });
