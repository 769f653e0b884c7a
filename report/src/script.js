"use strict";
(() => {
  const tip = document.getElementById("tip");
  const show = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 12, innerWidth - box.width - 4)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
  };
  const hide = () => { tip.hidden = true; };

  document.addEventListener("pointermove", (event) => {
    const marked = event.target.closest("[data-tip]");
    if (marked) show(marked.dataset.tip, event.clientX, event.clientY);
    else if (!event.target.closest("svg.cells")) hide();
  });
  document.addEventListener("scroll", hide, true);

  // Heat maps: each row carries its shares in basis points, the table its columns.
  const percent = (points) => (points / 100).toFixed(points < 1000 ? 2 : 1) + "\u202f%";
  for (const map of document.querySelectorAll(".heat")) {
    const table = map.querySelector("table");
    const rows = [...table.tBodies[0].rows];
    const msbs = JSON.parse(table.dataset.msbs);
    const left = table.dataset.left.split(" ").map(Number);
    const width = Number(table.dataset.width);
    const readout = document.getElementById(map.id + "-read");
    const words = (row, column) => {
      const points = Number(row.dataset.s.split(" ")[column]);
      const name = row.cells[0].title;
      return name + " in " + msbs[column] + ": " + (points ? percent(points) : "none");
    };
    let at = [0, 0];
    const go = (row, column) => {
      at = [Math.max(0, Math.min(row, rows.length - 1)), Math.max(0, Math.min(column, msbs.length - 1))];
      rows.forEach((each, index) => each.classList.toggle("at", index === at[0]));
      readout.textContent = words(rows[at[0]], at[1]);
      const box = rows[at[0]].querySelector("svg").getBoundingClientRect();
      show(readout.textContent, box.left + ((left[at[1]] + 0.5) / width) * box.width - 12, box.top);
    };
    map.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      go(at[0] + step[0], at[1] + step[1]);
    });
    map.addEventListener("blur", () => {
      hide();
      rows[at[0]].classList.remove("at");
    });
    const point = (event) => {
      const cells = event.target.closest("svg.cells");
      if (!cells) return;
      const box = cells.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * width;
      const column = left.findLastIndex((start) => start <= x);
      if (column < 0) return;
      const text = words(cells.closest("tr"), column);
      readout.textContent = text;
      show(text, event.clientX, event.clientY);
    };
    map.addEventListener("pointermove", point);
    map.addEventListener("pointerdown", point);
  }

  // Tables: a click on a column head sorts, numbers largest first.
  const value = (cell) => Number(cell.textContent.replace(/[,\s]/g, "").replace("−", "-"));
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
      const numeric = head.classList.contains("n");
      const now = head.getAttribute("aria-sort");
      const down = now ? now === "ascending" : numeric;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = (a, b) => numeric
        ? (value(a.cells[column]) || 0) - (value(b.cells[column]) || 0)
        : a.cells[column].textContent.localeCompare(b.cells[column].textContent, undefined, { numeric: true });
      const rows = [...table.tBodies[0].rows].sort((a, b) => (down ? order(b, a) : order(a, b)));
      table.tBodies[0].append(...rows);
    }));
  }

  for (const input of document.querySelectorAll("[data-filter]")) {
    const rows = [...document.getElementById(input.dataset.filter).tBodies[0].rows];
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
})();
