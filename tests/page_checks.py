"""What a page owes to people who hear it or see it badly: names of controls and pictures, texts that stand out."""

from typing import Any, Final

LEAST_CONTRAST: Final = 4.5  # WCAG 2, level AA, texts of usual size
_NAMED: Final = {
    *("button", "checkbox", "combobox", "dialog", "grid", "gridcell", "group", "image", "img", "link", "list"),
    *("meter", "radio", "radiogroup", "searchbox", "slider", "spinbutton", "switch", "table", "textbox"),
}
_ONLY_IF_FOCUSABLE: Final = {"group", "list", "table"}

_PALE: Final = """(least) => {
  const numbers = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const over = ([r, g, b, a = 1], ground) => [r, g, b].map((value, i) => value * a + ground[i] * (1 - a));
  const luminance = (color) => color.map((value) => value / 255)
    .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const groundOf = (element) => {
    if (!element) return numbers(getComputedStyle(document.body).backgroundColor).slice(0, 3);
    const color = numbers(getComputedStyle(element).backgroundColor);
    return color[3] === 0 ? groundOf(element.parentElement) : over(color, groundOf(element.parentElement));
  };
  const opacityOf = (element) =>
    element ? Number(getComputedStyle(element).opacity) * opacityOf(element.parentElement) : 1;
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    const text = walker.currentNode.textContent.trim();
    if (!text || !element.checkVisibility() || style.clipPath !== "none") continue;
    if (element.closest(":disabled, option, script, style")) continue;
    const ink = numbers(element instanceof SVGElement ? style.fill : style.color), ground = groundOf(element);
    const seen = over([...ink.slice(0, 3), (ink[3] ?? 1) * opacityOf(element)], ground);
    const [dark, bright] = [luminance(seen), luminance(ground)].sort((a, b) => a - b);
    const contrast = (bright + 0.05) / (dark + 0.05);
    if (contrast < least) found.push(`${contrast.toFixed(2)}: ${text.slice(0, 40)}`);
  }
  return found;
}"""


def nameless(page: Any) -> list[str]:
    """Return the controls and pictures that a screen reader could not tell apart, as the browser itself names them."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return [
        _words(node) for node in nodes if _must_be_named(node) and not node.get("name", {}).get("value", "").strip()
    ]


def pale_texts(page: Any) -> list[str]:
    """Return the texts in view whose contrast with their ground is too low."""
    return page.evaluate(_PALE, LEAST_CONTRAST)


def _must_be_named(node: dict[str, Any]) -> bool:
    if node["ignored"] or node["role"]["value"] not in _NAMED:
        return False
    focusable = any(fact["name"] == "focusable" and fact["value"]["value"] for fact in node.get("properties", []))
    return focusable or node["role"]["value"] not in _ONLY_IF_FOCUSABLE


def _words(node: dict[str, Any]) -> str:
    return f"{node['role']['value']} {_value(node, 'description')}".strip()


def _value(node: dict[str, Any], field: str) -> str:
    return node.get(field, {}).get("value", "")
