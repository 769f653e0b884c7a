// Tests of the pages with a real server and a real browser. `scripts/check-pages` runs them.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { readFileSync } from "node:fs";
import { crawl, lookAtAll } from "./accessibility.mjs";
import { launch, Watch } from "./browser.mjs";
import { Keys, Mouse } from "./hands.mjs";
import { api, Following, hide } from "./live.mjs";
import { Region } from "./region.mjs";

/** The longest time for servers to arrive, in milliseconds. */
const ARRIVAL = 120_000;

let region, browser;

before(async () => {
  region = await Region.start(process.env.RAS);
  browser = await launch(process.env.CHROMIUM);
});

after(async () => {
  await browser?.close();
  if (region) assert.deepEqual(await region.stop(), []);
});

/** A new browser context with a page, and its errors. */
async function fresh(options = {}, of = region) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const watch = new Watch(context, of.base);
  const page = await context.newPage();
  return { context, watch, page };
}

async function signIn(hands, page, of = region) {
  await page.goto(of.base);
  await hands.fill("Token", of.token);
  await hands.press("button", "Sign in");
  await page.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/");
}

/** Fills in the request form with more than the region has of a hardware type; waits for the refusal. */
async function tooMuch(hands, page, name, type) {
  await hands.press("link", "Request");
  const hardware = page.getByRole("group", { name: /^Hardware/ }).locator("label").nth(type);
  await hands.fill("Reservation", name);
  await hands.fill("Capacity, RRU", "100000");
  await hands.fill("Owner", "launch");
  await hands.fill(await hardware.innerText(), "1");
  // Nothing is pressed: the plan is shown while the form is filled in.
  await page.getByText(/of 100,000 RRU can be granted/).waitFor();
  await page.getByText(/^Reason \(/).first().waitFor();
}

const path = (page) => new URL(page.url()).pathname;

/** Reloads the page until the condition holds. */
async function until(page, what, holds) {
  const end = Date.now() + ARRIVAL;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `${path(page)}: not ${what} in time:\n${await page.locator("main").innerText()}`);
    await page.waitForTimeout(500);
    await page.reload();
  }
}

for (const [turn, Hands] of [Mouse, Keys].entries()) {
  describe(Hands.what, () => {
    let context, watch, page, hands;

    before(async () => {
      ({ context, watch, page } = await fresh());
      page.setDefaultTimeout(60_000);
      hands = new Hands(page);
    });

    after(async () => {
      await context?.close();
      assert.deepEqual(watch?.take(), []);
    });

    test("signs in, and not with a wrong token", async () => {
      await page.goto(`${region.base}/reservations`);
      assert.equal(path(page), "/sign-in");
      watch.expect("401");
      await hands.fill("Token", "ras_unknown");
      await hands.press("button", "Sign in");
      await page.getByRole("alert").waitFor();
      await hands.fill("Token", region.token);
      await hands.press("button", "Sign in");
      await page.getByRole("heading", { level: 1, name: "Reservations" }).waitFor();
    });

    let name, servers;

    /** Number of servers on the page of a reservation. */
    const granted = async () => {
      const tile = await page.locator("dl div").filter({ hasText: "Held now, RRU" }).first().innerText();
      return Number(tile.match(/([\d,]+) servers?/)[1].replaceAll(",", ""));
    };

    /** Whether more servers than before are held, and no server is arriving; servers may still leave. */
    const arrived = async (before) =>
      (await granted()) > before && (await page.getByText(/No server is arriving or leaving\.|\b0 servers arriving/).count()) > 0;

    test("finds a reservation", async () => {
      await hands.fill("Name or owner", "backend");
      await hands.press("button", "Show");
      await page.waitForURL(/q=backend/);
      name = await page.getByRole("rowheader").first().innerText();
      await hands.press("link", name);
      await page.getByRole("heading", { level: 1, name }).waitFor();
      servers = await granted();
    });

    test("previews and requests emergency capacity", async () => {
      await hands.press("link", "Emergencies");
      await hands.fill("Reservation", name);
      await hands.fill("Additional capacity, RRU", "3");
      await hands.fill("Reason", "a launch");
      await hands.press("button", "Preview");
      await page.getByRole("heading", { name: "Preview" }).waitFor();
      await page.getByText("Until the next solve:").waitFor();
      await hands.press("button", /^Grant .* to /);
      const row = page.getByRole("row").filter({ hasText: name }).first();
      await until(page, "granted", async () => (await row.innerText()).includes("granted"));
    });

    test("sees the servers arrive", async () => {
      await hands.press("link", name);
      await page.getByRole("heading", { level: 1, name }).waitFor();
      await until(page, "there", () => arrived(servers));
    });

    test("is refused a request that is too large, with reasons and alternatives", async () => {
      name = `launch ${Hands.what}`;
      // The first turn uses up a hardware type, so the second takes another one.
      await tooMuch(hands, page, name, [0, 11][turn]);
    });

    test("takes an alternative, and applies it", async () => {
      await hands.press("button", "Plan this");
      await page.waitForURL(/\/plans\//);
      await page.getByText(/: all .* RRU can be granted/).waitFor();
      // If the region has changed, an updated plan is shown; it is applied instead.
      const applied = page.getByText("Applied", { exact: true });
      for (let again = 0; again < 4 && (await applied.count()) === 0; again += 1) {
        // Servers in use of others move only if that is confirmed.
        const asks = page.getByRole("checkbox", { name: /^Move .* in use of other reservations$/ });
        if (await asks.count()) await hands.tick(asks);
        await hands.press("button", "Apply");
        await applied.waitFor({ timeout: 8_000 }).catch(() => {});
      }
      await applied.waitFor();
    });

    test("sees the servers of the request arrive", async () => {
      await hands.press("link", name);
      await page.getByRole("heading", { level: 1, name }).waitFor();
      await until(page, "there", () => arrived(0));
    });

    test("previews and plans maintenance of a server", async () => {
      await hands.press("link", "Servers", page.getByRole("main"));
      await page.getByRole("heading", { level: 1, name: `Servers of ${name}` }).waitFor();
      await page.getByRole("rowheader").first().waitFor();
      // The reservation is too small to spare a server; those of a shared buffer have no guarantee.
      const buffer = "shared-buffer/C5-S1";
      await page.goto(new URL(`/reservations/${encodeURIComponent(buffer)}/servers`, page.url()).href);
      await page.getByRole("heading", { level: 1, name: `Servers of ${buffer}` }).waitFor();
      const server = await page.getByRole("rowheader").nth(turn).innerText();
      await hands.press("link", server);
      await page.getByRole("heading", { level: 1, name: server }).waitFor();
      await hands.press("link", "Plan maintenance");
      await hands.fill("Duration, minutes", "30");
      await hands.fill("Reason", "new fans");
      await hands.press("button", "Preview");
      await page.getByText("1 server in 1 window").waitFor();
      await hands.press("button", "Plan maintenance");
      await page.waitForURL(/\/maintenance#/);
      await page.getByRole("row").filter({ hasText: server }).first().waitFor();
    });

    test("simulates the loss of an MSB", async () => {
      await hands.press("link", "Drills");
      await hands.choose("What is lost", "m03");
      await hands.press("button", "Simulate");
      await page.getByRole("heading", { name: "Remaining capacity" }).waitFor();
      await page.getByText(/Every guarantee is kept|would have less than is guaranteed/).waitFor();
    });

    test("finds a server from any page", async () => {
      // The key works wherever nothing is typed.
      await page.getByRole("heading", { level: 1 }).click();
      await page.keyboard.press("/");
      await page.keyboard.type("m03-r001-s01");
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/servers\/m03-r001-s01$/);
      await hands.press("link", "m03-r001");
      await page.getByRole("heading", { level: 1, name: /^Rack|m03-r001/ }).waitFor();
    });

    test("sorts and filters the list of servers", async () => {
      await hands.press("link", "Servers");
      await hands.choose("Use", "free");
      await hands.press("button", "Show");
      await page.waitForURL(/use=free/);
      // The address changes before the rows do.
      await page.waitForFunction(() => {
        const uses = [...document.querySelectorAll("tbody td[data-label=Use]")];
        return uses.length > 0 && uses.every((use) => use.innerText.trim() === "free");
      });
      await hands.press("link", "Rack");
      await page.waitForURL(/order_by=rack/);
      const racks = await page.locator("tbody td[data-label=Rack]").allInnerTexts();
      assert.deepEqual(racks, [...racks].sort());
    });

    test("sorts the trail, events and a drill, and keeps the filter", async () => {
      for (const [path, title, order] of [
        ["/trail?action=server_bound", "Number", "seq"],
        ["/failures/events?state=active", "Covers", "scope_id"],
        ["/drills?msb=m01", "Reservation", "reservation"],
      ]) {
        await page.goto(`${region.base}${path}`);
        await hands.press("link", title, page.locator("thead"));
        await page.waitForURL(new RegExp(`order_by=${order}$`));
        const shown = new URL(page.url()).searchParams;
        for (const [name, value] of new URL(path, region.base).searchParams) assert.equal(shown.get(name), value, path);
        const names = await page.locator("table:has(thead a.sort) tbody th").allInnerTexts();
        const sorted = [...names].sort((one, other) => (order === "seq" ? one - other : one < other ? -1 : 1));
        assert.ok(names.length > 0, path);
        assert.deepEqual(names, sorted, path);
      }
    });

    test("saves a small table as CSV and JSON, with exact instants", async () => {
      const call = api(region);
      // Further changes, so that there is something to save.
      for (const percent of [2, 3]) {
        await call("PUT", `/ops/v1/contracts/${name}`, { in_use_percent: percent, window_seconds: 86_400 });
        await call("DELETE", `/ops/v1/contracts/${name}`);
      }
      await page.goto(`${region.base}/reservations/${name}`);
      const save = async (label) => {
        const button = page.getByRole("button", { name: `Save as ${label}: Changes of the reservation, newest first` });
        const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
        return readFileSync(await download.path(), "utf8");
      };
      const { entries } = await call("GET", `/v1/reservations/${name}/history`);
      const instant = (text) => new Date(text).toISOString();
      const expected = entries.map((of) => [of.seq, instant(of.at), of.actor]);
      assert.ok(expected.length >= 4, "it was changed several times");
      const rows = JSON.parse(await save("JSON"));
      assert.deepEqual(rows.map((row) => [row.number, instant(row.time), row.actor]), expected);
      const [head, ...lines] = (await save("CSV")).trim().split("\r\n");
      assert.equal(head, "Number,Time,Actor,Action,Subject,Details");
      const columns = lines.map((line) => line.split(",", 3));
      assert.deepEqual(columns.map(([number, time, actor]) => [Number(number), instant(time), actor]), expected);
    });

    test("sorts and saves a table that holds forms", async () => {
      await page.goto(`${region.base}/settings`);
      const table = page.locator("table", { hasText: "Hardware types and their shared buffers" });
      await hands.press("button", "Servers", table.locator("thead"));
      const rows = table.locator("tbody tr:not(.more)");
      const cells = await rows.evaluateAll((rows) => rows.map((row) => [...row.cells].slice(0, 2).map((cell) => cell.textContent)));
      const counts = cells.map(([, servers]) => Number(servers.replaceAll(/\D/g, "")));
      assert.ok(new Set(counts).size > 1, "types differ in their numbers of servers");
      assert.deepEqual(counts, [...counts].sort((one, other) => one - other));
      // Each form is still below its type.
      const forms = await rows.evaluateAll((rows) => rows.map((row) => row.nextElementSibling.querySelector("summary").getAttribute("aria-label")));
      assert.deepEqual(forms, cells.map(([type]) => `Change ${type}`));
      const button = page.getByRole("button", { name: "Save as CSV: Hardware types and their shared buffers" });
      const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
      const [head, ...lines] = readFileSync(await download.path(), "utf8").trim().split("\r\n");
      assert.equal(head, "Type,Servers,Buffer size,In buffer,Size set by");
      assert.deepEqual(lines.map((line) => line.split(",")[0]), cells.map(([type]) => type));
    });

    test("chooses a theme that stays", async () => {
      await hands.open("browser");
      await hands.press("button", "Dark");
      const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
      const dark = await background();
      await page.goto(`${region.base}/solves`);
      assert.equal(await background(), dark);
      await hands.open("browser");
      await hands.press("button", "Light");
      await page.waitForFunction(() => document.documentElement.dataset.theme === "light");
      assert.notEqual(await background(), dark);
    });

    test("signs out", async () => {
      await hands.open("browser");
      await hands.press("button", "Sign out");
      await page.waitForURL(/sign-in/);
      await page.goto(region.base);
      assert.equal(path(page), "/sign-in");
    });
  });
}

describe("pages that follow the region", () => {
  let context, watch, page, call;

  before(async () => {
    ({ context, watch, page } = await fresh());
    page.setDefaultTimeout(60_000);
    await signIn(new Mouse(page), page);
    call = api(region);
  });

  after(async () => {
    await context?.close();
    assert.deepEqual(watch?.take(), []);
  });

  test("the overview shows a change through the API without a reload", async () => {
    await page.goto(region.base);
    const following = await Following.of(page);
    await call("POST", "/ops/v1/moves/stop", { why: "a test" });
    await following.shows("#standing", "stopped by an operator");
    await call("POST", "/ops/v1/moves/resume");
    await page.locator("#standing").filter({ hasNotText: "stopped by an operator" }).waitFor();
  });

  test("a reservation shows its servers arrive, to the last", async () => {
    const { hardware_types: types } = await call("GET", "/ops/v1/hardware-types");
    await call("POST", "/ops/v1/moves/stop", { why: "a test" });
    await call("POST", "/v1/reservations", { reservation: "arriving", owner: "launch", capacity_rru: 5,
      rru: Object.fromEntries(types.map(({ hardware_type: type }) => [type, 1])) });
    const url = `${region.base}/reservations/arriving`;
    const there = async () => (await context.request.get(url)).status() === 200;
    for (const end = Date.now() + ARRIVAL; !(await there());) {
      assert.ok(Date.now() < end, "it is not granted in time");
      await page.waitForTimeout(200);
    }
    await page.goto(url);
    const following = await Following.of(page);
    await following.shows("#standing", /Arriving: 0 of \d+ servers, moves are stopped/);
    assert.deepEqual(await lookAtAll(page), []);
    await call("POST", "/ops/v1/moves/resume");
    await following.shows("#standing", /Arrived: all \d+ servers/);
    const bar = page.getByRole("progressbar", { name: "Servers that have arrived" });
    assert.equal(await bar.evaluate((of) => of.value / of.max), 1);
    assert.deepEqual(await lookAtAll(page), []);
  });

  test("a part that is worked in waits", async () => {
    await page.goto(`${region.base}/moves`);
    const following = await Following.of(page);
    await page.locator("summary", { hasText: "Stop all moves" }).click();
    await page.getByLabel("Reason").fill("half a reas");
    await call("POST", "/ops/v1/moves/stop", { why: "another one" });
    await following.shows("[data-as-of]", "waits while you use it");
    assert.equal(await page.getByLabel("Reason").inputValue(), "half a reas");
    await page.getByLabel("Reason").fill("");
    await page.locator("summary", { hasText: "Stop all moves" }).click();
    await page.getByRole("heading", { level: 1 }).click();
    await following.shows("#mover", "Moves are stopped");
    await call("POST", "/ops/v1/moves/resume");
    await following.shows("#mover", "Executed by the mover");
  });

  test("the age of a page counts up, and says when it is not live", async () => {
    await page.goto(`${region.base}/moves`);
    const following = await Following.of(page);
    await following.shows("[data-as-of]", /^as of [0-3]\s?s ago$/);
    // The connection is lost, and no other can be made.
    for (let turn = 0; turn < 40; turn += 1) watch.expect("ERR_FAILED");
    await page.route("**/*", (route) => route.abort());
    await hide(page, true);
    await hide(page, false);
    await following.shows("[data-as-of]", /^not live: reconnecting, as of \d+\s?s ago$/);
    try {
      const seconds = async () => Number((await following.asOf()).match(/(\d+)\s?s ago/)[1]);
      const before = await seconds();
      // A busy machine is late to tick.
      for (let turn = 0; turn < 40 && (await seconds()) < before + 2; turn += 1) {
        await page.waitForTimeout(250);
      }
      assert.ok((await seconds()) >= before + 2, "it does not count up");
      assert.equal(await page.getByRole("status").first().innerText(), "Not live: reconnecting");
      assert.deepEqual(await lookAtAll(page), []);
    } finally {
      await page.unroute("**/*");
    }
    await following.shows("[data-as-of]", /^as of [0-3]\s?s ago$/);
    watch.expected.splice(0);
  });

  test("a hidden page does not follow, and catches up", async () => {
    await page.goto(`${region.base}/moves`);
    const following = await Following.of(page);
    await following.shows("[data-as-of]", /^as of/);
    await hide(page, true);
    await call("POST", "/ops/v1/moves/stop", { why: "a test" });
    await page.waitForTimeout(3_000);
    assert.equal(await page.locator("#mover").filter({ hasText: "Moves are stopped" }).count(), 0);
    await hide(page, false);
    await following.shows("#mover", "Moves are stopped");
    await call("POST", "/ops/v1/moves/resume");
  });

  const began = new Date(Date.now() - 60_000).toISOString();
  const lost = (more) => ({ event: "e-msb", scope: "msb", scope_id: "m05", kind: "correlated_failure", started_at: began, ...more });

  test("show the loss of an MSB, and its end, without a reload", async () => {
    const other = await context.newPage();
    await page.goto(`${region.base}/failures`);
    await other.goto(`${region.base}/msbs/m05`);
    const [failures, msb] = [await Following.of(page), await Following.of(other)];
    await call("POST", "/ops/v1/events", lost());
    await failures.shows("#outages", /m05\s*lost/);
    await msb.shows("#standing", "This MSB is lost");
    assert.deepEqual([...(await lookAtAll(page)), ...(await lookAtAll(other))], []);
    await call("POST", "/ops/v1/events", lost({ ended_at: new Date().toISOString() }));
    await failures.shows("#outages", /m05\s*back/);
    await other.locator("#standing").filter({ hasNotText: "This MSB is lost" }).waitFor();
    await other.close();
  });

  test("show maintenance that is planned elsewhere, without a reload", async () => {
    await page.goto(`${region.base}/maintenance`);
    const following = await Following.of(page);
    const { servers } = await call("GET", "/ops/v1/servers?limit=1&filter=reservation=%22shared-buffer/C5-S1%22");
    await call("POST", "/ops/v1/maintenance", { scope: "server", scope_id: servers[0].server, why: "seen at once",
      starts_at: new Date(Date.now() + 3_600_000).toISOString(), length_seconds: 3_600 });
    await following.shows("#windows", "seen at once");
  });
});

describe("the history", () => {
  test("zooms by dragging over a chart and by links, and is accessible", async () => {
    const { context, watch, page } = await fresh();
    page.setDefaultTimeout(60_000);
    await signIn(new Mouse(page), page);
    await until(page, "sampled", async () => {
      if (path(page) !== "/history") await page.goto(`${region.base}/history?range=1h`);
      return (await page.locator(".chart canvas").count()) >= 2;
    });
    assert.deepEqual(await lookAtAll(page), []);
    await page.setViewportSize({ width: 1440, height: 900 });
    const plot = await page.locator(".chart .u-over").first().boundingBox();
    const at = (part) => [plot.x + plot.width * part, plot.y + plot.height / 2];
    await page.mouse.move(...at(0.5));
    await page.mouse.down();
    await page.mouse.move(...at(0.75), { steps: 5 });
    await page.mouse.up();
    await page.waitForURL(/\/history\?from=\d+&until=\d+$/);
    const shown = () => {
      const query = new URL(page.url()).searchParams;
      return Number(query.get("until")) - Number(query.get("from"));
    };
    const quarter = shown();
    assert.ok(Math.abs(quarter - 900) < 60, `${quarter} s of an hour`);
    assert.deepEqual(await lookAtAll(page), []);
    await page.getByRole("link", { name: "Zoom out" }).click();
    await page.waitForFunction((before) => {
      const query = new URLSearchParams(location.search);
      return query.get("until") - query.get("from") === 2 * before;
    }, quarter);
    await context.close();
    assert.deepEqual(watch.take(), []);
  });
});

describe("a running solve", () => {
  let slow, context, watch, page;

  before(async () => {
    // It ends by its deadline or by a button, not by itself.
    slow = await Region.start(process.env.RAS, `
      [service]
      deadline = "5m"
      [solver]
      gap_limit = 0.0
      stall_rounds = 1000000
    `);
    ({ context, watch, page } = await fresh({}, slow));
    page.setDefaultTimeout(60_000);
    await signIn(new Mouse(page), page, slow);
  });

  after(async () => {
    await context?.close();
    assert.deepEqual(watch?.take(), []);
    if (slow) assert.deepEqual(await slow.stop(), []);
  });

  test("shows its progress, and ends when it is cancelled", async () => {
    const mouse = new Mouse(page);
    // The first solve goes on, so this one waits for it.
    await page.goto(`${slow.base}/solves`);
    await mouse.press("button", "Solve now");
    await page.waitForURL(/\/solves\/./);
    const following = await Following.of(page);
    await following.shows("#facts", "waits for a worker");
    const { solves } = await api(slow)("GET", "/ops/v1/solves");
    await api(slow)("POST", `/ops/v1/solves/${solves.find((of) => of.state === "running").solve}/cancel`);
    await following.shows("#facts", "running");
    const elapsed = await page.locator("[data-elapsed]").innerText();
    await page.waitForFunction((text) => document.querySelector("[data-elapsed]")?.textContent !== text, elapsed);
    await following.shows("#outcome", /phase 1 of 2/);
    // When incumbent and bound are known depends on the machine; until then the tile says that they are not.
    await following.shows("#outcome", /Proved gap\s*([\d.]+\s*%|\S+\s*incumbent or bound not known yet)/);
    assert.deepEqual(await lookAtAll(page), []);
    await mouse.press("button", "Cancel solve");
    await page.locator("#outcome").filter({ hasText: "cancelled" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Cancel solve" }).count(), 0);
    assert.deepEqual(await lookAtAll(page), []);
  });
});

describe("a form of an earlier session", () => {
  let context, watch, page, mouse;

  before(async () => {
    ({ context, watch, page } = await fresh());
    mouse = new Mouse(page);
    await signIn(mouse, page);
  });

  after(async () => {
    await context?.close();
    assert.deepEqual(watch?.take(), []);
  });

  /** Fills in a form, and ends the session in another tab. */
  async function typed() {
    await page.goto(`${region.base}/moves`);
    await page.getByText("Stop all moves").click();
    await mouse.fill("Reason", "typed before");
    const other = await context.newPage();
    await other.goto(region.base);
    const hands = new Mouse(other);
    await hands.open("browser");
    await hands.press("button", "Sign out");
    await other.waitForURL(/sign-in/);
    return other;
  }

  /** Sends what was kept, and sees its answer. */
  async function sent() {
    await page.getByRole("heading", { name: "Nothing was sent yet" }).waitFor();
    await page.getByText("typed before").waitFor();
    assert.deepEqual(await lookAtAll(page), []);
    await mouse.press("button", "Send");
    await page.getByText("By browser: typed before").waitFor();
    await mouse.press("button", "Resume moves");
    await page.getByText("Stop all moves").waitFor();
  }

  test("is kept until its reader has signed in", async () => {
    const other = await typed();
    watch.expect("401");
    await mouse.press("button", "Stop moves");
    await page.getByText("What you typed is kept").waitFor();
    await mouse.fill("Token", region.token);
    await mouse.press("button", "Sign in");
    await sent();
    await other.close();
  });

  test("is kept where its reader has signed in again in another tab", async () => {
    const other = await typed();
    await signIn(new Mouse(other), other);
    watch.expect("403");
    await mouse.press("button", "Stop moves");
    await sent();
    await other.close();
  });
});

describe("accessibility", () => {
  test("of the sign-in page", async () => {
    const { context, watch, page } = await fresh();
    await page.goto(`${region.base}/sign-in`);
    assert.deepEqual(await lookAtAll(page), []);
    await context.close();
    assert.deepEqual(watch.take(), []);
  });

  test("of every page, wide and narrow, light and dark", async (t) => {
    const { context, watch, page } = await fresh();
    await signIn(new Mouse(page), page);
    const { seen, wrong } = await crawl(context, region.base, ["/", "/failures/replacements", "/failures/loans", "/drills?msb=m01"]);
    t.diagnostic(`looked at ${seen.join(", ")}`);
    await context.close();
    assert.deepEqual([...wrong, ...watch.take()], []);
    assert.ok(seen.length >= 8, `only ${seen}`);
  });

  test("of a plan in the request form and on its page", async () => {
    const { context, watch, page } = await fresh();
    const mouse = new Mouse(page);
    await signIn(mouse, page);
    await tooMuch(mouse, page, "launch of a page", 2);
    const wrong = await lookAtAll(page);
    await mouse.press("button", "Show the plan");
    await page.waitForURL(/\/plans\//);
    wrong.push(...(await lookAtAll(page)));
    await context.close();
    assert.deepEqual([...wrong, ...watch.take()], []);
  });
});
