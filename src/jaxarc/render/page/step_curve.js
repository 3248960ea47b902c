// A curve over the steps of an episode, with a line at the step that is shown.

const SVG = "http://www.w3.org/2000/svg";
const [RIGHT, TOP, BOTTOM] = [8, 8, 18];
const LETTER = 6.8; // pixels, of a digit of the marks

class Curve {
  constructor(svg, onPick) {
    this.svg = svg;
    this.values = [0];
    this.left = 0;
    const pick = (event) => {
      const box = svg.getBoundingClientRect();
      const share = (event.clientX - box.left - this.left) / (box.width - this.left - RIGHT);
      onPick(Math.round(share * (this.values.length - 1)));
    };
    svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture(event.pointerId); pick(event); });
    svg.addEventListener("pointermove", (event) => { if (event.buttons) pick(event); });
  }

  /** Draw values of steps 0, 1, ...; `bounds` are lowest and highest, `spell` writes one of them. */
  draw(values, bounds, spell) {
    this.values = values;
    this.width = this.svg.clientWidth || 300;
    this.height = this.svg.clientHeight || 96;
    this.bounds = bounds;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.replaceChildren();
    const nearest = Math.min(...bounds.map(Math.abs)) / (bounds[1] - bounds[0]);
    const marks = bounds[0] * bounds[1] < 0 && nearest > 0.2 ? [bounds[0], 0, bounds[1]] : bounds;
    this.left = 10 + LETTER * Math.max(...marks.map((mark) => spell(mark).length));
    for (const mark of marks) {
      this.add("line", { x1: this.left, x2: this.width - RIGHT, y1: this.y(mark), y2: this.y(mark), class: "rule" });
      this.add("text", { x: this.left - 6, y: this.y(mark) + 3.5, class: "mark", "text-anchor": "end" }).textContent = spell(mark);
    }
    for (const step of [0, values.length - 1]) {
      const anchor = step ? "end" : "start";
      this.add("text", { x: this.x(step), y: this.height - 3, class: "mark", "text-anchor": anchor }).textContent = String(step);
    }
    const path = values.map((value, step) => (step ? `H${this.x(step)}V${this.y(value)}` : `M${this.x(0)} ${this.y(value)}`));
    this.add("path", { d: path.join(""), class: "curve" });
    this.head = this.add("line", { y1: TOP - 4, y2: this.height - BOTTOM, class: "head" });
    this.dot = this.add("circle", { r: 4, class: "dot" });
  }

  show(step) {
    const x = this.x(step);
    this.head.setAttribute("x1", x);
    this.head.setAttribute("x2", x);
    this.dot.setAttribute("cx", x);
    this.dot.setAttribute("cy", this.y(this.values[step]));
  }

  add(kind, attributes) {
    const element = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    this.svg.append(element);
    return element;
  }

  x(step) {
    return this.left + ((this.width - this.left - RIGHT) * step) / Math.max(1, this.values.length - 1);
  }

  y(value) {
    const [low, high] = this.bounds;
    return TOP + (this.height - TOP - BOTTOM) * (1 - (value - low) / (high - low || 1));
  }
}
