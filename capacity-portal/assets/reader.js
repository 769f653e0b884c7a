"use strict";
(() => {
  // Instants in the reader's time zone; the exact instant in UTC stays in the title.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const two = (n) => String(n).padStart(2, "0");
  const local = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
  const localize = (root) => {
    for (const element of root.querySelectorAll("time[data-instant]")) element.textContent = local(new Date(element.dateTime));
  };
  const elsewhere = new Date().getTimezoneOffset() !== 0 || zone !== "UTC";
  if (elsewhere) {
    for (const note of document.querySelectorAll("[data-zone]")) note.textContent = `Times are ${zone}; point at one for UTC`;
  }

  // The theme, beside what the system asks for.
  for (const box of document.querySelectorAll("[data-themes]")) {
    const chosen = document.documentElement.dataset.theme || "system";
    for (const theme of ["system", "light", "dark"]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = theme[0].toUpperCase() + theme.slice(1);
      button.setAttribute("aria-pressed", String(theme === chosen));
      button.addEventListener("click", () => {
        if (theme === "system") {
          delete document.documentElement.dataset.theme;
          localStorage.removeItem("theme");
        } else {
          document.documentElement.dataset.theme = theme;
          localStorage.setItem("theme", theme);
        }
        // Charts are drawn with the colours of the theme.
        location.reload();
      });
      box.append(button);
    }
  }

  // One menu is open at a time; Escape and a click elsewhere close it.
  const close = (but) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (menu !== but) menu.open = false;
  };
  document.addEventListener("click", (event) => close(event.target.closest("details.menu")));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      const open = document.querySelector("details.menu[open]");
      if (open) {
        open.open = false;
        open.querySelector("summary").focus();
      }
    }
    const typing = event.target.closest("input, select, textarea, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const field = document.querySelector("[data-search]");
      if (field) {
        event.preventDefault();
        field.focus();
        field.select();
      }
    }
  });

  // On a narrow screen the current page is in view in the navigation.
  const nav = document.querySelector(".top nav");
  const current = nav?.querySelector("[aria-current]");
  if (current && nav.scrollWidth > nav.clientWidth) nav.scrollLeft = current.offsetLeft - (nav.clientWidth - current.offsetWidth) / 2;

  // Buttons that copy names and ids.
  const copyable = (root) => {
    if (!navigator.clipboard) return;
    for (const element of root.querySelectorAll("[data-copy]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.setAttribute("aria-label", `Copy ${element.dataset.copy}`);
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(element.dataset.copy);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      element.after(" ", button);
    }
  };

  // Tables that are complete on the page: cards on narrow screens, sorting by a column, and the rows as CSV and JSON.
  const value = (cell) => {
    const time = cell.querySelector("time");
    if (time) return Date.parse(time.dateTime);
    const text = cell.textContent.trim();
    const number = Number(text.replace(/[,\u202f\u00a0 ]/g, "").replace(/(%|RRU|s|W|MiB)$/, ""));
    return text !== "" && !Number.isNaN(number) ? number : text;
  };
  const compare = (one, other) => {
    if (typeof one === "number" && typeof other === "number") return one - other;
    if (typeof one === typeof other) return one.localeCompare(other, "en", { numeric: true });
    return typeof one === "number" ? -1 : 1;
  };
  // Files have the exact instants.
  const exact = (cell) => cell.querySelector("time")?.dateTime ?? cell.textContent.trim().replace(/\s+/g, " ");
  const field = (cell) => {
    const text = exact(cell);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const formats = {
    CSV: { type: "text/csv", text: (heads, rows) => [heads, ...rows].map((cells) => cells.map(field).join(",")).join("\r\n") + "\r\n" },
    JSON: {
      type: "application/json",
      text: (heads, rows) => {
        const names = heads.map((head, at) => head.textContent.trim().toLowerCase().replace(/[^a-z0-9]+/g, "_") || `column_${at + 1}`);
        const data = (cell) => (cell.querySelector("time") ? exact(cell) : value(cell));
        const object = (cells) => Object.fromEntries(cells.map((cell, at) => [names[at], data(cell)]));
        return JSON.stringify(rows.map(object), null, 2) + "\n";
      },
    },
  };
  // The chosen order of each table, by its titles: it outlasts the replacement of a part of the page.
  const orders = new Map();
  const tables = (root) => {
    for (const table of root.querySelectorAll(".scroll > table:not(.cards), .scroll > table[data-complete]")) {
      if (table.dataset.complete === "enhanced") continue;
      const heads = [...(table.tHead?.rows[0]?.cells || [])];
      const body = table.tBodies[0];
      if (table.tHead?.rows.length !== 1 || !body || table.closest(".heat, .calendar")) continue;
      const rows = [...body.rows].filter((row) => !row.classList.contains("more"));
      // The row of forms below a row goes where it goes.
      const forms = new Map(rows.map((row) => [row, row.nextElementSibling?.classList.contains("more") ? row.nextElementSibling : null]));
      if (rows.some((row) => row.cells.length !== heads.length || [...row.cells].some((cell) => cell.colSpan > 1))) continue;
      table.classList.add("cards");
      table.dataset.complete = "enhanced";
      table.setAttribute("role", "table");
      for (const part of [table.tHead, body]) part.setAttribute("role", "rowgroup");
      for (const row of [...table.tHead.rows, ...rows]) row.setAttribute("role", "row");
      for (const head of heads) head.setAttribute("role", "columnheader");
      for (const row of rows) {
        [...row.cells].forEach((cell, at) => {
          cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
          if (cell.tagName === "TD") cell.dataset.label = heads[at].textContent.trim();
        });
      }
      if (rows.length < 2) continue;
      const titles = heads.map((head) => head.textContent.trim()).join("|");
      const sort = (at, descending) => {
        for (const other of heads) other.removeAttribute("aria-sort");
        heads[at].setAttribute("aria-sort", descending ? "descending" : "ascending");
        const sign = descending ? -1 : 1;
        const keyed = rows.map((row) => [value(row.cells[at]), row]);
        keyed.sort((one, other) => sign * compare(one[0], other[0]));
        body.append(...keyed.flatMap(([, row]) => [row, forms.get(row)]).filter(Boolean));
        orders.set(titles, [at, descending]);
      };
      heads.forEach((head, at) => {
        if (head.textContent.trim() === "") return;
        const button = document.createElement("button");
        button.type = "button";
        button.className = "sort";
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => sort(at, head.getAttribute("aria-sort") === "ascending"));
      });
      if (orders.has(titles)) sort(...orders.get(titles));
      if (rows.length < 4) continue;
      const tools = document.createElement("div");
      tools.className = "tools";
      const name = table.caption?.textContent.trim() || "table";
      for (const [label, format] of Object.entries(formats)) {
        const save = document.createElement("button");
        save.type = "button";
        save.className = "plain";
        save.textContent = label;
        save.setAttribute("aria-label", `Save as ${label}: ${name}`);
        save.addEventListener("click", () => {
          // A column without a title holds buttons.
          const titled = (cells) => [...cells].filter((_, at) => heads[at].textContent.trim() !== "");
          const shown = [...body.rows].filter((row) => forms.has(row));
          const text = format.text(titled(heads), shown.map((row) => titled(row.cells)));
          const link = document.createElement("a");
          link.href = URL.createObjectURL(new Blob([text], { type: format.type }));
          link.download = `${name.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 40) || "table"}.${label.toLowerCase()}`;
          link.click();
          URL.revokeObjectURL(link.href);
        });
        tools.append(save);
      }
      table.parentElement.before(tools);
    }
  };

  const enhance = (root) => {
    if (elsewhere) localize(root);
    copyable(root);
    tables(root);
  };
  enhance(document);
  // A part of the page was replaced.
  document.addEventListener("exchanged", (event) => enhance(event.target));
})();
