"use strict";
(() => {
  // Charts: the page contains the figures as JSON, the style sheet the colours.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const units = {
    count: (v) => v.toLocaleString("en", { maximumFractionDigits: 2 }),
    percent: (v) => (100 * v).toLocaleString("en", { maximumFractionDigits: 3 }) + "\u202f%",
    seconds: (v) => v.toLocaleString("en", { maximumFractionDigits: 2 }) + "\u202fs",
    rru: (v) => v.toLocaleString("en", { maximumFractionDigits: 2 }) + "\u202fRRU",
  };
  // The reader's time zone, in the form of ISO 8601.
  const wall = (v) => new Date((v - 60 * new Date(v * 1000).getTimezoneOffset()) * 1000).toISOString();
  // The date is shown where a day begins.
  const moment = (v, before, ticks) => {
    const text = wall(v);
    const day = text.slice(0, 10);
    const fine = ticks.length > 1 && ticks[1] - ticks[0] < 60;
    const clock = text.slice(11, fine ? 19 : 16);
    if (ticks.length > 1 && ticks[1] - ticks[0] >= 86400) return day;
    return before !== undefined && wall(before).slice(0, 10) === day ? clock : clock + "\n" + day;
  };
  const draw = (element) => {
    const of = JSON.parse(element.querySelector("script").textContent);
    const show = units[of.unit] || units.count;
    // A logarithmic scale shows whole decades, at least two. Zero has no place on it: it is drawn at the lower edge.
    const positive = of.series.flatMap((one) => one.values).filter((v) => v > 0);
    const log = of.log && positive.length > 0;
    const decades = [Math.floor(Math.log10(Math.min(...positive))), Math.ceil(Math.log10(Math.max(...positive)))];
    if (decades[1] - decades[0] < 2) decades[0] = decades[1] - 2;
    const edges = decades.map((at) => 10 ** at);
    const drawn = (values) => (log ? values.map((v) => (v === null ? null : Math.max(v, edges[0]))) : values);
    const axis = { stroke: colour("dim"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, space: 84, font: "12px system-ui, sans-serif" };
    const time = of.across === "time";
    const across = of.across === "servers" ? units.count : units.seconds;
    // A single point needs a range: half an hour on each side. Percentages that round to zero are drawn as zero.
    const still = time && of.at.length > 0 && of.at[0] === of.at[of.at.length - 1];
    const around = of.span ? () => of.span : still ? () => [of.at[0] - 1800, of.at[0] + 1800] : undefined;
    const least = of.unit === "percent" ? 0.0005 : 0;
    const paths = of.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined;
    // The upper edge of a band is marked; the series before it is the lower one.
    const edge = (at) => of.series[at].band || Boolean(of.series[at + 1]?.band);
    const bands = of.series.flatMap((one, at) => (one.band ? [{ series: [at + 1, at], fill: `${colour(one.colour)}33` }] : []));
    const series = of.series.map((one, at) => ({
      label: one.label, stroke: colour(one.colour), width: edge(at) ? 1 : 2, paths, spanGaps: !edge(at),
      points: { show: one.values.length < 60 && !edge(at), size: 6, fill: colour(one.colour) },
      value: (_, v) => (v === null || v === undefined ? "\u2013" : log && v <= edges[0] ? `\u2264 ${show(v)}` : show(v)),
    }));
    const options = {
      width: element.clientWidth, height: 240, bands, series: [{
        label: of.across_label, value: (u, v) => (v === null ? "\u2013" : time ? wall(v).slice(0, 16).replace("T", " ") : across(v)),
      }, ...series],
      axes: [{ ...axis, values: time ? (_, ticks) => ticks.map((v, at) => moment(v, ticks[at - 1], ticks)) : (_, ticks) => ticks.map((v) => across(v)) },
        { ...axis, size: 78, space: 34, ...(log && { splits: () => Array.from({ length: decades[1] - decades[0] + 1 }, (_, at) => 10 ** (decades[0] + at)), filter: (_, ticks) => ticks }),
          values: (_, ticks) => ticks.map((v) => (v === null ? "" : show(v))) }],
      scales: { x: { time, range: around }, y: { distr: log ? 3 : 1, range: log ? () => edges : (_, low, high) => [0, Math.max(high * 1.08, least) || 1] } },
      tzDate: (seconds) => new Date(seconds * 1000),
      cursor: { drag: { x: true, y: false, setScale: !element.dataset.zoom } },
      // A part of the time is a page of its own, with its own figures.
      hooks: element.dataset.zoom && { setSelect: [(u) => {
        const [from, until] = [0, u.select.width].map((part) => Math.round(u.posToVal(u.select.left + part, "x")));
        if (u.select.width > 4) location.assign(`${element.dataset.zoom}?from=${from}&until=${until}`);
      }] },
    };
    const chart = new uPlot(options, [of.at, ...of.series.map((one) => drawn(one.values))], element);
    new ResizeObserver(() => {
      if (element.clientWidth && element.clientWidth !== chart.width) chart.setSize({ width: element.clientWidth, height: 240 });
    }).observe(element);
    return chart;
  };
  const drawn = new Map();
  const enhance = (root) => {
    for (const element of drawn.keys()) if (!element.isConnected) drawn.delete(element);
    for (const element of root.querySelectorAll(".chart")) drawn.set(element, draw(element));
    // Tables that are wider than the screen can be scrolled with the keyboard.
    for (const box of root.querySelectorAll(".scroll")) {
      if (box.scrollWidth > box.clientWidth && !box.hasAttribute("tabindex")) {
        box.tabIndex = 0;
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", box.querySelector("caption")?.textContent || "Table");
      }
    }
  };
  enhance(document);
  // A part of the page was replaced.
  document.addEventListener("exchanged", (event) => enhance(event.target));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const [element, chart] of drawn) {
      chart.destroy();
      drawn.set(element, draw(element));
    }
  });

  // The request form shows its plan while it is filled in.
  for (const form of document.querySelectorAll("form[data-plan]")) {
    const preview = document.getElementById("live");
    let timer = 0;
    let pending = null;
    let last = "";
    const counted = () => form.elements[form.elements.count.value === "servers" ? "servers" : "capacity_rru"];
    // Each error of the plan is shown at its field too; the longest part of its path that is a field.
    const mark = () => {
      form.querySelectorAll(".error.typed").forEach((error) => error.remove());
      form.querySelectorAll("[data-typed]").forEach((field) => {
        field.removeAttribute("aria-invalid");
        delete field.dataset.typed;
      });
      for (const error of preview.querySelectorAll("[data-field]")) {
        const path = error.dataset.field;
        for (let name = path; name; name = name.slice(0, Math.max(name.lastIndexOf("."), name.lastIndexOf("["), 0))) {
          const field = form.querySelector(`[name="${CSS.escape(name)}"]`);
          if (!field) continue;
          field.setAttribute("aria-invalid", "true");
          field.dataset.typed = "";
          const text = document.createElement("span");
          text.className = "error typed";
          text.textContent = error.textContent.slice(path.length + 2);
          field.after(text);
          break;
        }
      }
    };
    // The form of a reservation that exists is filled in with what it has.
    form.elements.reservation.addEventListener("change", (event) => {
      const name = event.target.value.trim();
      const known = [...(event.target.list?.options || [])].some((option) => option.value === name);
      if (known && name !== form.elements.filled_from.value) location.assign("/request?reservation=" + encodeURIComponent(name));
    });
    const plan = async () => {
      const body = new URLSearchParams(new FormData(form));
      if (!form.checkValidity() || !counted().value || body.toString() === last) return;
      last = body.toString();
      pending?.abort();
      pending = new AbortController();
      preview.setAttribute("aria-busy", "true");
      try {
        const answer = await fetch(form.dataset.plan, { method: "POST", body, signal: pending.signal });
        const text = await answer.text();
        if ((answer.headers.get("content-type") || "").startsWith("text/html") && answer.ok) {
          preview.innerHTML = text;
          mark();
        } else last = "";
        preview.removeAttribute("aria-busy");
      } catch (error) {
        if (error.name === "AbortError") return;
        preview.removeAttribute("aria-busy");
        last = "";
      }
    };
    form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(plan, 600); });
    if (counted().value) plan();
  }
})();
