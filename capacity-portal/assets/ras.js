"use strict";
(() => {
  // Charts: figures stand in the page as JSON, colours in the style sheet.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const units = {
    count: (v) => v.toLocaleString("en", { maximumFractionDigits: 2 }),
    percent: (v) => (100 * v).toLocaleString("en", { maximumFractionDigits: 3 }) + "\u202f%",
    seconds: (v) => v.toLocaleString("en", { maximumFractionDigits: 2 }) + "\u202fs",
    rru: (v) => v.toLocaleString("en", { maximumFractionDigits: 2 }) + "\u202fRRU",
  };
  // As elsewhere on the pages: UTC, the day where it begins.
  const moment = (v, before, ticks) => {
    const text = new Date(v * 1000).toISOString();
    const day = text.slice(0, 10);
    const fine = ticks.length > 1 && ticks[1] - ticks[0] < 60;
    const clock = text.slice(11, fine ? 19 : 16);
    if (ticks.length > 1 && ticks[1] - ticks[0] >= 86400) return day;
    return before !== undefined && new Date(before * 1000).toISOString().slice(0, 10) === day ? clock : clock + "\n" + day;
  };
  const draw = (place) => {
    const of = JSON.parse(place.querySelector("script").textContent);
    const show = units[of.unit] || units.count;
    // What begins far away would press the rest to the ground.
    const all = of.series.flatMap((one) => one.values).filter((v) => v !== null);
    const wide = of.wide && all.length > 0 && Math.min(...all) > 0 && Math.max(...all) > 50 * Math.min(...all);
    const axis = { stroke: colour("dim"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, space: 84, font: "12px system-ui, sans-serif" };
    const time = of.across === "time";
    // One point has no width: half an hour around it. And what rounds to nothing is drawn as that.
    const still = time && of.at.length > 0 && of.at[0] === of.at[of.at.length - 1];
    const around = still ? () => [of.at[0] - 1800, of.at[0] + 1800] : undefined;
    const least = of.unit === "percent" ? 0.0005 : 0;
    const paths = of.stepped ? uPlot.paths.stepped({ align: 1 }) : of.bars ? uPlot.paths.bars({ size: [0.8, 60] }) : undefined;
    const series = of.series.map((one) => ({
      label: one.label, stroke: colour(one.colour), width: 2, dash: one.dashed ? [6, 4] : undefined,
      fill: of.bars ? colour(one.colour) : undefined, paths, spanGaps: true,
      points: { show: of.bars ? false : one.values.length < 60, size: 6, fill: colour(one.colour) },
      value: (_, v) => (v === null || v === undefined ? "\u2013" : show(v)),
    }));
    const options = {
      width: place.clientWidth, height: 240, series: [{
        label: of.across_label, value: (u, v) => (v === null ? "\u2013" : time ? new Date(v * 1000).toISOString().slice(0, 16).replace("T", " ") : units.seconds(v)),
      }, ...series],
      axes: [{ ...axis, values: time ? (_, ticks) => ticks.map((v, at) => moment(v, ticks[at - 1], ticks)) : (_, ticks) => ticks.map((v) => units.seconds(v)) },
        { ...axis, size: 78, space: 34, values: (_, ticks) => ticks.map((v) => (v === null ? "" : show(v))) }],
      scales: { x: { time, range: around }, y: { distr: wide ? 3 : 1, range: of.from_zero ? (_, low, high) => [0, Math.max(high * 1.08, least) || 1] : undefined } },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      cursor: { drag: { x: true, y: false } },
    };
    const chart = new uPlot(options, [of.at, ...of.series.map((one) => one.values)], place);
    new ResizeObserver(() => {
      if (place.clientWidth && place.clientWidth !== chart.width) chart.setSize({ width: place.clientWidth, height: 240 });
    }).observe(place);
    return chart;
  };
  const places = [...document.querySelectorAll(".chart")];
  const drawn = places.map(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    places.forEach((place, index) => { drawn[index].destroy(); drawn[index] = draw(place); });
  });

  // Heat maps: a row carries its shares in basis points, the table its columns.
  const percent = (points) => (points / 100).toFixed(points < 1000 ? 2 : 1) + "\u202f%";
  for (const map of document.querySelectorAll(".heat")) {
    const table = map.querySelector("table");
    const rows = [...table.tBodies[0].rows];
    const msbs = JSON.parse(table.dataset.msbs);
    const left = table.dataset.left.split(" ").map(Number);
    const width = Number(table.dataset.width);
    const readout = document.getElementById(map.id + "-read");
    let at = [0, 0];
    const go = (row, column) => {
      at = [Math.max(0, Math.min(row, rows.length - 1)), Math.max(0, Math.min(column, msbs.length - 1))];
      rows.forEach((each, index) => each.classList.toggle("at", index === at[0]));
      const points = Number(rows[at[0]].dataset.s.split(" ")[at[1]]);
      readout.textContent = rows[at[0]].cells[0].textContent + " in " + msbs[at[1]] + ": " + (points ? percent(points) : "none");
    };
    map.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      go(at[0] + step[0], at[1] + step[1]);
    });
    map.addEventListener("pointermove", (event) => {
      const cells = event.target.closest("tbody svg");
      if (!cells) return;
      const box = cells.getBoundingClientRect();
      const column = left.findLastIndex((start) => start <= ((event.clientX - box.left) / box.width) * width);
      if (column >= 0) go(rows.indexOf(cells.closest("tr")), column);
    });
  }

  // What is wider than its place can be moved by keyboard.
  for (const place of document.querySelectorAll(".scroll")) {
    if (place.scrollWidth > place.clientWidth && !place.hasAttribute("tabindex")) {
      place.tabIndex = 0;
      place.setAttribute("role", "region");
      place.setAttribute("aria-label", place.querySelector("caption")?.textContent || "Table");
    }
  }

  // The form that says while it is filled in what would come of it.
  for (const form of document.querySelectorAll("form[data-live]")) {
    const place = document.getElementById("live");
    let waiting = 0;
    let asked = null;
    let last = "";
    const ask = async () => {
      const body = new URLSearchParams(new FormData(form));
      if (!form.checkValidity() || body.toString() === last) return;
      last = body.toString();
      asked?.abort();
      asked = new AbortController();
      place.setAttribute("aria-busy", "true");
      try {
        const answer = await fetch(form.dataset.live, { method: "POST", body, signal: asked.signal });
        const text = await answer.text();
        if ((answer.headers.get("content-type") || "").startsWith("text/html") && answer.ok) place.innerHTML = text;
        else last = "";
        place.removeAttribute("aria-busy");
      } catch (error) {
        if (error.name === "AbortError") return;
        place.removeAttribute("aria-busy");
        last = "";
      }
    };
    form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(ask, 600); });
    if (form.elements.capacity_rru?.value) ask();
  }
})();
