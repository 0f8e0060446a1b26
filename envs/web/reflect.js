// The page as HTML in which live values stand as attributes, hidden things are marked, and every element has a number;
// with it the elements themselves, which the page cannot reach.
(limits) => {
  const root = document.documentElement;
  if (!root) return { html: "", nodes: [] };
  const nodes = [root, ...root.querySelectorAll("*")].slice(0, limits.nodes);
  const copy = root.cloneNode(true);
  const copies = [copy, ...copy.querySelectorAll("*")].slice(0, limits.nodes);
  const flag = (node, name, on) => (on ? node.setAttribute(name, "") : node.removeAttribute(name));
  const shapes = new Set(["rect", "circle", "ellipse", "line", "path", "polygon", "polyline", "text"]);
  const clickable = (node, style, tag) => {
    if (node.closest("a[href], button, label, select, textarea, [role=button]") || node.closest(limits.except)) return false;
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (style.cursor === "pointer" && own && getComputedStyle(node.parentElement || node).cursor !== "pointer") return true;
    const box = node.getBoundingClientRect();
    return (shapes.has(tag) || (node.children.length === 0 && node instanceof HTMLElement)) && tag !== "br" &&
      node !== document.body && node !== root && box.width > 0 && box.height > 0;
  };
  nodes.forEach((node, i) => {
    const twin = copies[i], style = getComputedStyle(node), tag = node.tagName.toLowerCase();
    twin.setAttribute("data-agent-node", String(i));
    if (style.display === "none" || (style.visibility !== "visible" && tag !== "html")) twin.setAttribute("hidden", "");
    else twin.removeAttribute("hidden");
    if (tag === "input" || tag === "textarea") {
      if (node.type === "checkbox" || node.type === "radio") flag(twin, "checked", node.checked);
      else if (node.type !== "file") twin.setAttribute("value", node.value.slice(0, limits.value));
    } else if (tag === "option") flag(twin, "selected", node.selected);
    if (node.disabled === true) twin.setAttribute("disabled", "");
    if (limits.clickable && clickable(node, style, tag)) twin.setAttribute("data-clickable", "");
  });
  copy.querySelectorAll("script, style").forEach((node) => node.remove());
  return { html: copy.outerHTML.slice(0, limits.html), nodes };
}
