"use strict";
// Line charts in SVG: linear or logarithmic, with bands behind, a key below and values on hover.
const softmapChart = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = { solid: "", dash: "7 4", dashdot: "7 4 2 4" };
  const element = (name, attributes, parent) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    parent?.append(node);
    return node;
  };

  // Round numbers between two ends: tenths, fifths or halves of a power of ten.
  function ticks(low, high, most) {
    const raw = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step || 0);
    return { found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  }

  // Ticks of a logarithmic axis between 10^low and 10^high: powers of ten, at most six of them;
  // within fewer than two decades also 2 and 5 times a power; within less, round numbers.
  function logTicks(low, high) {
    const first = Math.ceil(low - 1e-9), last = Math.floor(high + 1e-9), found = [];
    const every = Math.max(1, Math.ceil((last - first) / 5));
    for (let k = first; k <= last; k += every) found.push(10 ** k);
    if (found.length > 2) return found;
    const finer = [];
    for (let k = Math.floor(low); k <= last; k++)
      for (const m of [1, 2, 5]) if (Math.log10(m) + k >= low - 1e-9 && Math.log10(m) + k <= high + 1e-9) finer.push(m * 10 ** k);
    return finer.length > 2 ? finer : ticks(10 ** low, 10 ** high, 4).found;
  }

  // A value of a logarithmic axis, short: with as many digits as its neighbours need to differ.
  function logLabels(values, percent) {
    const scale = percent ? 100 : 1, unit = percent ? "\u00a0%" : "";
    const word = (v, digits) => {
      const rounded = Number((v * scale).toPrecision(digits)), size = Math.abs(rounded);
      return (size >= 1e-4 && size < 1e6 ? String(rounded) : rounded.toExponential().replace("e+", "e")) + unit;
    };
    for (let digits = 1; digits < 12; digits++) {
      const words = values.map((v) => word(v, digits));
      if (new Set(words).size === words.length && (digits > 1 || values.every((v) => Math.abs(Number(v.toPrecision(1)) / v - 1) < 1e-9))) return words;
    }
    return values.map((v) => word(v, 12));
  }

  const label = (v, digits) => {
    const size = Math.abs(v);
    if (size !== 0 && (size >= 1e7 || size < 1e-4)) return v.toExponential(1);
    return v.toLocaleString("en", { minimumFractionDigits: Math.min(digits, 6), maximumFractionDigits: Math.min(digits, 6) });
  };

  function marker(kind, x, y, colour, parent) {
    const shapes = { circle: `M${x - 3.5} ${y}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0`, square: `M${x - 3} ${y - 3}h6v6h-6z`, triangle: `M${x} ${y - 4}l4 7h-8z` };
    element("path", { d: shapes[kind], fill: colour, class: "mark" }, parent);
  }

  // spec: { lines: [{name, y, colour, dash, mark}], x, xlabel, log, window, bands, zoom }
  return function draw(host, spec) {
    const width = Math.max(260, host.clientWidth || 520), height = 300;
    const box = { left: 72, right: 12, top: 12, bottom: 62 };
    const inner = { w: width - box.left - box.right, h: height - box.top - box.bottom };
    const lines = spec.lines.filter((l) => l.y.filter((v, k) => Number.isFinite(v) && Number.isFinite(spec.x[k]) && v !== null).length > 1);
    host.replaceChildren();
    host.closest("figure").hidden = lines.length === 0;
    if (!lines.length) return 0;

    const end = Math.max(...spec.x), [x0, x1] = spec.zoom ?? [0, end > 0 ? end : 1];
    // a point in view, or an end of a line that is
    const inView = (k) => (spec.x[k + 1] ?? spec.x[k]) >= x0 && (spec.x[k - 1] ?? spec.x[k]) <= x1;
    const among = (wanted) => lines.flatMap((l) => l.y.filter((v, k) => v !== null && Number.isFinite(v) && (!spec.log || v > 0) && wanted(k)));
    const inside = among(inView), seen = inside.length ? inside : among(() => true);
    if (!seen.length) return 0;
    const values = spec.log ? seen.map(Math.log10) : seen;
    let [low, high] = spec.window && !spec.zoom ? spec.window : [Math.min(...values), Math.max(...values)];
    if (!(high > low)) { const pad = spec.log ? 0.5 : Math.max(Math.abs(high), 1) * 1e-3; low -= pad; high += pad; }
    else if (!spec.window || spec.zoom) { const pad = 0.05 * (high - low); low -= pad; high += pad; }
    const px = (x) => box.left + ((x - x0) / (x1 - x0)) * inner.w;
    const py = (v) => box.top + inner.h - (((spec.log ? Math.log10(v) : v) - low) / (high - low)) * inner.h;

    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height, "aria-hidden": "true" }, host);
    const clip = `clip-${host.id}`;
    // markers at either end of the time axis are shown whole
    element("rect", { x: box.left - 5, y: box.top, width: inner.w + 10, height: inner.h }, element("clipPath", { id: clip }, element("defs", {}, svg)));
    const plot = element("g", { "clip-path": `url(#${clip})` }, svg);
    for (const band of spec.bands)
      element("rect", { x: px(band.from), y: box.top, width: Math.max(0, px(band.to) - px(band.from)), height: inner.h, fill: band.colour, class: "band" }, plot);
    const text = (x, y, words, anchor, name) => { element("text", { x, y, "text-anchor": anchor, class: name ?? "tick" }, svg).textContent = words; };
    const across = ticks(x0, x1, Math.max(3, inner.w / 55));
    for (const t of across.found) {
      element("line", { x1: px(t), x2: px(t), y1: box.top, y2: box.top + inner.h, class: "grid" }, svg);
      text(px(t), box.top + inner.h + 16, label(t, across.digits), "middle", "tick x");
    }
    const up = spec.log ? { found: logTicks(low, high), digits: 0 } : ticks(low, high, 5);
    const words = spec.log ? logLabels(up.found, spec.percent) : up.found.map((t) => label(t, up.digits));
    up.found.forEach((t, n) => {
      element("line", { x1: box.left, x2: box.left + inner.w, y1: py(t), y2: py(t), class: "grid" }, svg);
      text(box.left - 6, py(t) + 4, words[n], "end", "tick y");
    });
    text(box.left + inner.w / 2, box.top + inner.h + 34, spec.xlabel, "middle", "title");

    lines.forEach((l, n) => {
      const points = l.y.map((v, k) => [spec.x[k], v]).filter(([x, v]) => v !== null && Number.isFinite(v) && (!spec.log || v > 0));
      const path = points.map(([x, v], k) => `${k ? "L" : "M"}${px(x).toFixed(1)} ${py(v).toFixed(1)}`).join("");
      element("path", { d: path, fill: "none", stroke: l.colour, "stroke-width": 2, "stroke-dasharray": DASHES[l.dash], class: "line" }, plot);
      const every = Math.max(1, Math.ceil(points.length / 14));
      points.forEach(([x, v], k) => { if (k % every === 0 || k === points.length - 1) marker(l.mark, px(x), py(v), l.colour, plot); });
      const at = box.left + n * Math.min(100, inner.w / lines.length), base = height - 10;
      element("line", { x1: at, x2: at + 26, y1: base - 4, y2: base - 4, stroke: l.colour, "stroke-width": 2, "stroke-dasharray": DASHES[l.dash] }, svg);
      marker(l.mark, at + 13, base - 4, l.colour, svg);
      text(at + 32, base, l.name, "start", "key");
    });

    const rule = element("line", { y1: box.top, y2: box.top + inner.h, class: "rule", visibility: "hidden" }, svg);
    const note = document.createElement("p");
    note.className = "note";
    host.append(note);
    const nearest = (event) => {
      const x = x0 + ((event.clientX - svg.getBoundingClientRect().left) * (width / svg.getBoundingClientRect().width) - box.left) / inner.w * (x1 - x0);
      let best = 0;
      spec.x.forEach((v, k) => { if (Math.abs(v - x) < Math.abs(spec.x[best] - x)) best = k; });
      return { x: Math.min(x1, Math.max(x0, x)), k: best };
    };
    let began = null;
    svg.addEventListener("pointermove", (event) => {
      const { k } = nearest(event);
      rule.setAttribute("x1", px(spec.x[k])); rule.setAttribute("x2", px(spec.x[k])); rule.setAttribute("visibility", "visible");
      note.textContent = `${spec.xlabel} ${Number(spec.x[k]).toPrecision(4)}: ` + lines.filter((l) => l.y[k] !== null).map((l) => `${l.name} ${l.y[k].toPrecision(8)}`).join(", ");
    });
    svg.addEventListener("pointerleave", () => { rule.setAttribute("visibility", "hidden"); note.textContent = ""; });
    svg.addEventListener("pointerdown", (event) => { began = nearest(event).x; });
    svg.addEventListener("pointerup", (event) => {
      const ended = nearest(event).x, from = began;
      began = null;
      if (from !== null && Math.abs(ended - from) > 0.03 * (x1 - x0)) spec.onzoom?.([Math.min(from, ended), Math.max(from, ended)]);
    });
    svg.addEventListener("dblclick", () => spec.onzoom?.(null));
    return lines.length;
  };
})();
