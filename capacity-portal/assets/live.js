"use strict";
// Replaces the parts of a page that follow the region. An event says which topics have changed; the page is then
// fetched again and its parts with these topics are exchanged, at most once a second. A part that is worked in waits.
(() => {
  const chip = document.querySelector("[data-as-of]");
  if (!chip || !document.querySelector("[data-live]")) return;
  const state = document.querySelector("[data-live-state]");

  const PAUSE = 1000;
  const SILENT = 10_000;
  const BACKOFF = [1000, 30_000];

  // Times of the monotonic clock, in milliseconds. `seen`: when the page was last known to show the region as it is.
  let seen = performance.now() - Number(chip.dataset.asOf);
  // Whether the page showed the region as it was at that time.
  let exact = Number(chip.dataset.asOf) === 0;
  let version = chip.dataset.version;
  let heard = performance.now();
  let source = null;
  let failures = 0;
  let timer = 0;
  let ended = "";

  // The parts as they were served: other scripts change what is shown.
  const served = new Map();
  const parts = () => document.querySelectorAll("[data-live]");
  for (const part of parts()) served.set(part.id, part.outerHTML);
  const topics = new Set([...parts()].flatMap((part) => part.dataset.live.split(" ")));

  const typed = (field) => {
    if (field.type === "hidden") return false;
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.options) {
      const first = [...field.options].findIndex((option) => option.defaultSelected);
      return field.selectedIndex !== Math.max(first, 0);
    }
    return field.value !== field.defaultValue;
  };
  // Whether a part is worked in: what has the focus, is open, typed or selected would be lost.
  const busy = (part) => {
    // After a click with a mouse the focus is not visible, and is not missed.
    if (part.querySelector(":focus-visible")) return true;
    if (part.querySelector("dialog[open], details.menu[open], details[open] form")) return true;
    if ([...part.querySelectorAll("input, select, textarea")].some(typed)) return true;
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed && selection.containsNode(part, true);
  };

  const waiting = new Map();
  const exchange = (part, next) => {
    served.set(part.id, next.outerHTML);
    const open = new Set([...part.querySelectorAll("details[open] > summary")].map((of) => of.textContent));
    for (const summary of next.querySelectorAll("details > summary")) {
      if (open.has(summary.textContent)) summary.parentElement.open = true;
    }
    const scrolled = [...part.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
    part.replaceWith(next);
    next.dispatchEvent(new CustomEvent("exchanged", { bubbles: true }));
    next.querySelectorAll(".scroll").forEach((box, at) => { box.scrollLeft = scrolled[at] ?? 0; });
  };
  const exchangeAll = () => {
    for (const [id, next] of waiting) {
      const part = document.getElementById(id);
      if (part && busy(part)) continue;
      waiting.delete(id);
      if (part) exchange(part, next);
    }
  };

  let wanted = false;
  let running = false;
  let last = -Infinity;
  const refresh = async () => {
    wanted = true;
    if (running || document.hidden || ended) return;
    running = true;
    const pause = last + PAUSE - performance.now();
    if (pause > 0) await new Promise((done) => setTimeout(done, pause));
    wanted = false;
    const began = performance.now();
    last = began;
    try {
      const answer = await fetch(location.pathname + location.search, { headers: { accept: "text/html" } });
      if (answer.redirected) ended = "signed out";
      else if (answer.status === 404) ended = "it is gone";
      else if (!answer.ok) throw new Error(`${answer.status}`);
      else {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of parts()) {
          const next = page.getElementById(part.id);
          if (!next || next.outerHTML === served.get(part.id)) waiting.delete(part.id);
          else waiting.set(part.id, document.adoptNode(next));
        }
        exchangeAll();
        const now = page.querySelector("[data-as-of]");
        if (now) {
          version = now.dataset.version;
          exact = Number(now.dataset.asOf) === 0;
          seen = began - Number(now.dataset.asOf);
        }
      }
    } catch {
      // Tried again with the next event, or after the connection is back.
      wanted = true;
    }
    running = false;
    show();
    if (wanted) setTimeout(() => wanted && refresh(), PAUSE);
  };

  const length = (seconds) => {
    if (seconds < 120) return `${seconds}\u202fs`;
    return seconds < 7200 ? `${Math.floor(seconds / 60)}\u202fmin` : `${Math.floor(seconds / 3600)}\u202fh`;
  };
  // When a duration that goes on was first seen here.
  const since = new WeakMap();
  const show = () => {
    exchangeAll();
    const now = performance.now();
    for (const span of document.querySelectorAll("[data-elapsed]")) {
      if (!since.has(span)) since.set(span, now - Number(span.dataset.elapsed));
      span.textContent = length(Math.floor((now - since.get(span)) / 1000));
    }
    const live = !ended && source !== null && now - heard < SILENT;
    const age = `as of ${length(Math.max(0, Math.floor((now - seen) / 1000)))} ago`;
    const why = ended ? `not live: ${ended}, ` : live ? "" : "not live: reconnecting, ";
    chip.textContent = why + age + (live && waiting.size > 0 ? ", waits while you use it" : "");
    chip.classList.toggle("stale", !live);
    // Told once, not every second.
    const told = live ? (state.dataset.told ? "Live again" : "") : ended ? `Not live: ${ended}` : "Not live: reconnecting";
    if (!live) state.dataset.told = "true";
    if (state.textContent !== told) state.textContent = told;
  };

  const disconnect = () => {
    clearTimeout(timer);
    timer = 0;
    source?.close();
    source = null;
  };
  const connect = () => {
    disconnect();
    if (document.hidden || ended) return;
    const opened = new EventSource("/events");
    source = opened;
    const hear = (event) => {
      heard = performance.now();
      failures = 0;
      const { version: now, changed } = JSON.parse(event.data);
      const stale = event.type === "hello" ? now !== version : (changed ?? []).some((topic) => topics.has(topic));
      if (stale || !exact && event.type === "hello") refresh();
      else if (exact && !wanted && !running && waiting.size === 0) {
        seen = heard;
        version = now;
      }
      show();
    };
    for (const type of ["hello", "changed", "alive"]) opened.addEventListener(type, hear);
    opened.onerror = () => {
      disconnect();
      const most = Math.min(BACKOFF[1], BACKOFF[0] * 2 ** failures);
      failures += 1;
      // The page is still read, if rarely: the server may have no room for another connection, or the session is over.
      if (failures > 1) refresh();
      timer = setTimeout(connect, most * (0.5 + Math.random() / 2));
      show();
    };
  };

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) disconnect();
    else {
      failures = 0;
      heard = performance.now();
      connect();
      if (wanted) refresh();
    }
    show();
  });
  // A page from the browser's cache is as old as when it was left.
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
  setInterval(show, 1000);
  connect();
})();
