"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // --- charts: their lines are those of notebooks and files (softmap.views.curves) --------------
  const trace = data.trace, charts = data.charts;

  // bands behind the curves: what the run was doing; a line of words names them as well
  const names = [...new Set(data.stages.map((s) => s.name))];
  const inks = Object.fromEntries(names.map((name, k) => [name, `--band-${k % 4}`]));
  const bands = (axis) => data.stages.map((s) => ({ from: s[axis][0], to: s[axis][1], colour: colour(inks[s.name]) }));
  byId("stages").hidden = names.length < 2;
  for (const name of names) {
    const key = document.createElement("span"), swatch = document.createElement("i");
    swatch.style.background = `var(${inks[name]})`;
    key.append(swatch, name);
    byId("stages").append(key);
  }

  let zoom = null;
  function draw() {
    const axis = document.querySelector("input[name=axis]:checked").value;
    let drawn = 0;
    for (const [id, chart] of Object.entries(charts)) {
      const lines = chart.lines.map((l) => ({ ...l, colour: colour(l.ink) }));
      drawn += softmapChart(byId(id), {
        lines, x: trace[axis], xlabel: axis === "work" ? "work (messages)" : "seconds", log: chart.log, percent: chart.percent,
        window: chart.window, bands: bands(axis), zoom, onzoom: (range) => { zoom = range; draw(); },
      });
    }
    byId("charts").hidden = drawn === 0;
    byId("short").hidden = drawn !== 0;
    byId("hint").hidden = byId("against").hidden = drawn === 0;
  }
  document.querySelectorAll("input[name=axis]").forEach((radio) => radio.addEventListener("change", () => { zoom = null; draw(); }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  matchMedia("print").addEventListener("change", draw);
  // text below a chart changes its height: only another width calls for another drawing
  let drawnWidth = 0;
  new ResizeObserver(() => {
    if (byId("charts").clientWidth === drawnWidth) return;
    drawnWidth = byId("charts").clientWidth;
    draw();
  }).observe(byId("charts"));
  draw();

  // --- tables -----------------------------------------------------------------------------------
  function cells(tag, values, names = []) {
    const row = document.createElement("tr");
    values.forEach((value, k) => {
      const cell = document.createElement(tag);
      if (tag === "th") cell.scope = "col";
      if (names[k] === "row" || names[k] === "column") cell.className = "place";
      cell.append(value);
      row.append(cell);
    });
    return row;
  }

  const columns = Object.keys(trace);
  const short = (v) => (v === null ? "" : typeof v === "string" ? v : Number.isInteger(v) ? v.toLocaleString("en") : v.toPrecision(7));
  byId("trace").tHead.append(cells("th", columns));
  byId("trace").tBodies[0].append(...trace[columns[0]].map((_, k) => cells("td", columns.map((c) => short(trace[c][k])))));

  async function unpack(text, Kind) {
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Kind(await new Response(stream).arrayBuffer());
  }

  function variables(label, state, mass) {
    const { count, kept, shape, names: called, states: named } = data.variables;
    const stateOf = (i, x) => named?.[i]?.[x] ?? String(x);
    let order = Uint32Array.from({ length: count }, (_, i) => i), found = order;
    let sorted = { key: "variable", down: false }, page = 0;
    const chance = new Uint16Array(count);
    for (let i = 0; i < count; i++)
      for (let k = 0; k < kept; k++) if (state[i * kept + k] === label[i]) chance[i] = mass[i * kept + k];
    const value = { variable: (i) => i, label: (i) => label[i], "LP value": (i) => chance[i] };

    const largest = (i) => {
      const parts = [];
      let rest = 65535;
      for (let k = 0; k < kept; k++) {
        const m = mass[i * kept + k];
        if (m < 33) continue; // under 0.0005
        rest -= m;
        parts.push(`${stateOf(i, state[i * kept + k])}: ${(m / 65535).toFixed(3)}`);
      }
      if (rest > 33) parts.push(`others: ${(rest / 65535).toFixed(3)}`);
      return parts.join(", ");
    };
    const names = ["variable", ...(shape ? ["row", "column"] : []), "label", "LP value", "largest LP values"];
    const place = (i) => (shape ? [Math.floor(i / shape[1]), i % shape[1]].map(String) : []);

    function head() {
      const titles = names.map((name) => {
        if (!(name in value)) return name;
        const button = document.createElement("button");
        button.type = "button";
        const arrow = sorted.key === name ? (sorted.down ? " ▼" : " ▲") : "";
        button.textContent = name + arrow;
        button.addEventListener("click", () => {
          sorted = { key: name, down: sorted.key === name && !sorted.down };
          order = sort(order); filter(); head();
          byId("table").tHead.querySelectorAll("button")[Object.keys(value).indexOf(name)].focus();
        });
        return button;
      });
      const row = cells("th", titles, names);
      names.forEach((name, k) => {
        if (name === sorted.key) row.children[k].setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      });
      byId("table").tHead.replaceChildren(row);
    }

    function sort(rows) {
      const key = value[sorted.key], sign = sorted.down ? -1 : 1;
      return rows.slice().sort((a, b) => sign * (key(a) - key(b)) || a - b);
    }

    function filter() {
      const range = byId("f-variable").value.match(/\d+/g);
      const low = range ? Number(range[0]) : 0, high = range ? Number(range[1] ?? range[0]) : count;
      const word = byId("f-variable").value.trim().toLowerCase();
      const wanted = byId("f-label").value.trim(), most = byId("f-value").value;
      found = order.filter((i) => (range === null && called && word ? called[i].toLowerCase().includes(word) : i >= low && i <= high) && (wanted === "" || stateOf(i, label[i]) === wanted)
        && (most === "" || chance[i] <= Number(most) * 65535));
      page = 0;
      show();
    }

    function show() {
      const size = Number(byId("f-rows").value), pages = Math.max(1, Math.ceil(found.length / size));
      page = Math.min(Math.max(0, page), pages - 1);
      const rows = Array.from(found.slice(page * size, (page + 1) * size), (i) =>
        cells("td", [called ? `${i} ${called[i]}` : String(i), ...place(i), stateOf(i, label[i]), (chance[i] / 65535).toFixed(3), largest(i)], names));
      byId("table").tBodies[0].replaceChildren(...rows);
      byId("found").textContent = `${found.length.toLocaleString("en")} of ${count.toLocaleString("en")} variables`;
      byId("p-where").textContent = `page ${page + 1} of ${pages.toLocaleString("en")}`;
      byId("p-first").disabled = byId("p-previous").disabled = page === 0;
      byId("p-next").disabled = byId("p-last").disabled = page === pages - 1;
    }

    const turn = (id, to) => byId(id).addEventListener("click", () => { page = to(); show(); });
    turn("p-first", () => 0); turn("p-previous", () => page - 1);
    turn("p-next", () => page + 1); turn("p-last", () => Infinity);
    byId("filters").addEventListener("input", filter);
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    head(); filter();
    document.body.dataset.ready = "yes";
  }

  const { label, state, mass } = data.variables;
  Promise.all([unpack(label, Uint32Array), unpack(state, Uint32Array), unpack(mass, Uint16Array)])
    .then((arrays) => variables(...arrays))
    .catch((error) => { byId("found").textContent = `The table needs a newer browser (${error}).`; });
})();
