"use strict";
// Tooltips and heat maps, shared by the report of a solve and the pages of the server. Pages without
// an element #tip have no tooltips.
(() => {
  const tip = document.getElementById("tip");
  const show = (text, x, y) => {
    if (!tip) return;
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 12, innerWidth - box.width - 4)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
  };
  const hide = () => { if (tip) tip.hidden = true; };

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
    let at = [0, 0];
    const select = (row, column) => {
      at = [Math.max(0, Math.min(row, rows.length - 1)), Math.max(0, Math.min(column, msbs.length - 1))];
      rows.forEach((each, index) => each.classList.toggle("at", index === at[0]));
      const points = Number(rows[at[0]].dataset.s.split(" ")[at[1]]);
      readout.textContent = rows[at[0]].cells[0].title + " in " + msbs[at[1]] + ": " + (points ? percent(points) : "none");
    };
    map.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      select(at[0] + step[0], at[1] + step[1]);
      const box = rows[at[0]].querySelector("svg.cells").getBoundingClientRect();
      show(readout.textContent, box.left + ((left[at[1]] + 0.5) / width) * box.width - 12, box.top);
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
      select(rows.indexOf(cells.closest("tr")), column);
      show(readout.textContent, event.clientX, event.clientY);
    };
    map.addEventListener("pointermove", point);
    map.addEventListener("pointerdown", point);
  }
})();
