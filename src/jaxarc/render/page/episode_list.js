// The list of episodes: filtered, ordered, and only as many rows in the page as are in view.

const ROW = 52; // pixels, as in the style sheet
const SPARE = 6; // rows above and below those in view

class EpisodeList {
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.list = document.getElementById("list");
    this.spacer = document.getElementById("spacer");
    this.search = document.getElementById("search");
    this.outcome = document.getElementById("outcome");
    this.order = document.getElementById("order");
    this.texts = episodes.map((one) => `${index.tasks[one.task].id} ${one.pair} ${one.player}`.toLowerCase());
    this.shown = [];
    this.chosen = -1;
    this.list.addEventListener("scroll", () => this.draw());
    this.list.addEventListener("keydown", (event) => this.press(event));
    for (const field of [this.search, this.outcome, this.order]) field.addEventListener("input", () => this.filter());
    new ResizeObserver(() => this.draw()).observe(this.list);
    this.filter();
  }

  filter() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const outcome = this.outcome.value;
    this.shown = [];
    episodes.forEach((episode, episodeIndex) => {
      if (outcome !== "all" && (episode.solved === 1) !== (outcome === "solved")) return;
      if (words.every((word) => this.texts[episodeIndex].includes(word))) this.shown.push(episodeIndex);
    });
    const keys = { short: (e) => e.steps, long: (e) => -e.steps, far: (e) => e.similarity, paid: (e) => -e.reward };
    const key = keys[this.order.value];
    if (key) this.shown.sort((one, other) => key(episodes[one]) - key(episodes[other]) || one - other);
    this.summarize();
    this.list.scrollTop = 0;
    this.reveal();
    this.draw();
  }

  summarize() {
    const count = this.shown.length;
    const solved = this.shown.filter((episodeIndex) => episodes[episodeIndex].solved).length;
    const steps = this.shown.reduce((sum, episodeIndex) => sum + episodes[episodeIndex].steps, 0);
    const words = count.toLocaleString("en");
    document.getElementById("summary").textContent = count
      ? `${words} episode${count === 1 ? "" : "s"}, ${percent(solved / count)} solved, ${(steps / count).toFixed(1)} actions on average`
      : "No episode fits; change the filter.";
  }

  choose(episodeIndex) {
    const hadFocus = this.spacer.contains(document.activeElement);
    this.chosen = episodeIndex;
    this.reveal();
    this.draw();
    const button = this.spacer.querySelector('[aria-current="true"]');
    if (hadFocus && button) button.focus({ preventScroll: true });
  }

  /** Go some rows down the list, from the chosen one. */
  move(rows) {
    if (!this.shown.length) return;
    const at = this.shown.indexOf(this.chosen);
    const next = at < 0 ? 0 : Math.min(this.shown.length - 1, Math.max(0, at + rows));
    this.onChoose(this.shown[next]);
  }

  press(event) {
    const rows = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (!rows) return;
    event.preventDefault();
    this.move(rows);
  }

  reveal() {
    const at = this.shown.indexOf(this.chosen);
    if (at < 0) return;
    const [top, bottom] = [at * ROW, (at + 1) * ROW];
    const { scrollTop, clientHeight } = this.list;
    if (top < scrollTop) this.list.scrollTop = top;
    else if (bottom > scrollTop + clientHeight) this.list.scrollTop = bottom - clientHeight;
  }

  draw() {
    const first = Math.max(0, Math.floor(this.list.scrollTop / ROW) - SPARE);
    const last = Math.min(this.shown.length, Math.ceil((this.list.scrollTop + this.list.clientHeight) / ROW) + SPARE);
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.episode : undefined;
    this.spacer.style.height = `${this.shown.length * ROW}px`;
    const rows = [];
    for (let at = first; at < last; at++) rows.push(this.row(at));
    this.spacer.replaceChildren(...rows);
    // One stop for the Tab key: the chosen episode, or the first of those in view.
    const stop = this.spacer.querySelector('[aria-current="true"]') || this.spacer.querySelector("button");
    if (stop) stop.tabIndex = 0;
    if (focused !== undefined) {
      const again = this.spacer.querySelector(`[data-episode="${focused}"]`);
      if (again) again.focus({ preventScroll: true });
    }
  }

  row(at) {
    const episodeIndex = this.shown[at];
    const episode = episodes[episodeIndex];
    const item = make("div", "item", "", { role: "listitem", "aria-setsize": this.shown.length, "aria-posinset": at + 1 });
    item.style.top = `${at * ROW}px`;
    const button = make("button", "episode", "", { type: "button", "aria-current": String(episodeIndex === this.chosen) });
    button.dataset.episode = String(episodeIndex);
    button.tabIndex = -1;
    const state = episode.solved ? "solved" : "failed";
    button.append(
      make("span", `sign ${state}`, episode.solved ? "✓" : "✗", { "aria-hidden": "true" }),
      make("span", "name", index.tasks[episode.task].id),
      make("span", "detail", `${episode.pair} · ${state} · ${episode.steps} action${episode.steps === 1 ? "" : "s"}`),
      make("span", "share", percent(episode.similarity)),
    );
    button.addEventListener("click", () => this.onChoose(episodeIndex));
    item.append(button);
    return item;
  }
}

function make(kind, className, text = "", attributes = {}) {
  const element = document.createElement(kind);
  element.className = className;
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
