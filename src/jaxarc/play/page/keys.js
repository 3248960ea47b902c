// Keys: one table, from which presses are answered and the help is written.

/** Name a key as people read it, such as "Shift+R". */
function nameOf(event) {
  const key = event.key === " " ? "Space" : event.key.length === 1 ? event.key.toUpperCase() : event.key;
  const isLetter = /^[A-Z]$/.test(key);
  const shift = event.shiftKey && (isLetter || event.key.length > 1) ? "Shift+" : "";
  return `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${shift}${key}`;
}

/**
 * Answer keys. A table is a list of [group, [[names, what it does, action], ...]]; `isOn` tells whether keys without
 * Ctrl are wanted.
 */
export function listen(table, isOn) {
  const actions = new Map();
  for (const [, rows] of table) {
    for (const [names, , action] of rows) if (action) for (const name of names) actions.set(name, action);
  }
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const name = nameOf(event);
    const action = actions.get(name);
    if (!action) return;
    const target = event.target, isPlain = !name.startsWith("Ctrl+") && !["Escape", "Shift+Enter"].includes(name);
    if (isPlain && !isOn()) return;
    if (target.matches?.("input, textarea, select")) return;
    if (name === "Space" && target.matches?.("button, [role=radio]")) return;
    if (name.startsWith("Ctrl+") && String(window.getSelection()) && name === "Ctrl+C") return;
    event.preventDefault();
    action();
  });
}

/** Write the table as help. */
export function describe(table, make) {
  return table.flatMap(([group, rows]) => [
    make("h3", {}, group),
    ...rows.map(([names, words]) => {
      const keys = names.flatMap((name, index) => (index ? [" ", make("kbd", {}, name)] : [make("kbd", {}, name)]));
      return make("div", {}, make("span", {}, words), make("span", {}, ...keys));
    }),
  ]);
}
