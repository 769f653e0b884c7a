// The pages as people use them: a real server, a real browser. `scripts/check-pages` runs this.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { crawl, lookAtAll } from "./accessibility.mjs";
import { launch, Watch } from "./browser.mjs";
import { Keys, Mouse } from "./hands.mjs";
import { Region } from "./region.mjs";

/** How long servers may be on their way, in milliseconds. */
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

/** A browser nobody has used, its first page, and what goes wrong behind it. */
async function fresh(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const watch = new Watch(context, region.base);
  const page = await context.newPage();
  return { context, watch, page };
}

async function signIn(hands, page) {
  await page.goto(region.base);
  await hands.fill("Token", region.token);
  await hands.press("button", "Sign in");
  await page.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/");
}

/** Fills in the form with more than there is of a hardware type, and is told so meanwhile. */
async function tooMuch(hands, page, name, type) {
  await hands.press("link", "Request");
  const hardware = page.getByRole("group", { name: /^Hardware/ }).locator("label").nth(type);
  await hands.fill("Reservation", name);
  await hands.fill("Capacity, RRU", "100000");
  await hands.fill("Owner", "launch");
  await hands.fill(await hardware.innerText(), "1");
  // Nothing is pressed: the answer comes while the form is filled in.
  await page.getByText(/of 100,000 RRU can be granted/).waitFor();
  await page.getByText(/^Why not \(/).first().waitFor();
}

const path = (page) => new URL(page.url()).pathname;

/** Looks again and again until this is so. */
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
      await hands.fill("Token", "ras_nobody_has_this_one");
      await hands.press("button", "Sign in");
      await page.getByRole("alert").waitFor();
      await hands.fill("Token", region.token);
      await hands.press("button", "Sign in");
      await page.getByRole("heading", { level: 1, name: "Reservations" }).waitFor();
    });

    let name, servers;

    /** Servers of the reservation whose page this is. */
    const granted = async () => {
      const tile = await page.locator("dl div").filter({ hasText: "Granted, RRU" }).first().innerText();
      return Number(tile.match(/([\d,]+) servers?/)[1].replaceAll(",", ""));
    };

    /** Whether more have come than these, and no more are on their way; some may leave as slowly as they do. */
    const arrived = async (before) =>
      (await granted()) > before && (await page.getByText(/No server comes or goes\.|\b0 servers on the way here/).count()) > 0;

    test("finds a reservation", async () => {
      await hands.fill("Name or owner", "backend");
      await hands.press("button", "Show");
      await page.waitForURL(/q=backend/);
      name = await page.getByRole("rowheader").first().innerText();
      await hands.press("link", name);
      await page.getByRole("heading", { level: 1, name }).waitFor();
      servers = await granted();
    });

    test("is granted capacity at once, told what that breaks before", async () => {
      await hands.press("link", "Emergencies");
      await hands.fill("Reservation", name);
      await hands.fill("How much more, RRU", "3");
      await hands.fill("Why", "a launch");
      await hands.press("button", "See what it takes");
      await page.getByRole("heading", { name: "What it takes and breaks" }).waitFor();
      await page.getByText("Until the next solve mends it").waitFor();
      await hands.press("button", /^Grant .* to /);
      const row = page.getByRole("row").filter({ hasText: name }).first();
      await until(page, "granted", async () => (await row.innerText()).includes("granted"));
    });

    test("sees the servers arrive", async () => {
      await hands.press("link", name);
      await page.getByRole("heading", { level: 1, name }).waitFor();
      await until(page, "there", () => arrived(servers));
    });

    test("asks for more than there is, and is told why not and what could be", async () => {
      name = `launch ${Hands.what}`;
      // Whoever comes first leaves nothing of a type: each takes another one.
      await tooMuch(hands, page, name, [0, 11][turn]);
    });

    test("takes an alternative, and applies it", async () => {
      await hands.press("button", "Plan this");
      await page.waitForURL(/\/plans\//);
      await page.getByText(/: all .* RRU can be granted/).waitFor();
      // A region that moved meanwhile is answered with a plan as it is now, which is applied instead.
      const applied = page.getByText("Applied", { exact: true });
      for (let again = 0; again < 4 && (await applied.count()) === 0; again += 1) {
        await hands.press("button", "Apply");
        await applied.waitFor({ timeout: 8_000 }).catch(() => {});
      }
      await applied.waitFor();
    });

    test("sees the servers of it arrive", async () => {
      await hands.press("link", name);
      await page.getByRole("heading", { level: 1, name }).waitFor();
      await until(page, "there", () => arrived(0));
    });

    test("finds one of them, and plans its maintenance after a look at what that takes", async () => {
      await hands.press("link", "Its servers");
      await page.getByRole("heading", { level: 1, name: `Servers of ${name}` }).waitFor();
      await page.getByRole("rowheader").first().waitFor();
      // So few servers spare none of their guarantee; those of a shared buffer have none to keep.
      const buffer = "shared-buffer/C5-S1";
      await page.goto(new URL(`/reservations/${encodeURIComponent(buffer)}/servers`, page.url()).href);
      await page.getByRole("heading", { level: 1, name: `Servers of ${buffer}` }).waitFor();
      const server = await page.getByRole("rowheader").nth(turn).innerText();
      await hands.press("link", server);
      await page.getByRole("heading", { level: 1, name: server }).waitFor();
      await hands.press("link", "Plan maintenance");
      await hands.fill("Work takes, minutes", "30");
      await hands.fill("Why", "new fans");
      await hands.press("button", "See what it takes");
      await page.getByText("1 server in 1 window").waitFor();
      await hands.press("button", "Plan it");
      await page.waitForURL(/\/maintenance#/);
      await page.getByRole("row").filter({ hasText: server }).first().waitFor();
    });

    test("plays the loss of an MSB through", async () => {
      await hands.press("link", "Drills");
      await hands.choose("MSB that is lost", "m03");
      await hands.press("button", "Play it through");
      await page.getByRole("heading", { name: "Who keeps what" }).waitFor();
      await page.getByText(/Everybody keeps what was promised|would have less than promised/).waitFor();
    });

    test("signs out", async () => {
      await hands.press("button", "Sign out");
      await page.waitForURL(/sign-in/);
      await page.goto(region.base);
      assert.equal(path(page), "/sign-in");
    });
  });
}

describe("accessibility", () => {
  test("of signing in", async () => {
    const { context, watch, page } = await fresh();
    await page.goto(`${region.base}/sign-in`);
    assert.deepEqual(await lookAtAll(page), []);
    await context.close();
    assert.deepEqual(watch.take(), []);
  });

  test("of every page, wide and narrow, light and dark", async (t) => {
    const { context, watch, page } = await fresh();
    await signIn(new Mouse(page), page);
    const { seen, wrong } = await crawl(context, region.base, ["/"]);
    t.diagnostic(`looked at ${seen.join(", ")}`);
    await context.close();
    assert.deepEqual([...wrong, ...watch.take()], []);
    assert.ok(seen.length >= 8, `only ${seen}`);
  });

  test("of an answer while it is typed, and of a plan", async () => {
    const { context, watch, page } = await fresh();
    const mouse = new Mouse(page);
    await signIn(mouse, page);
    await tooMuch(mouse, page, "launch of nobody", 2);
    const wrong = await lookAtAll(page);
    await mouse.press("button", "Plan it");
    await page.waitForURL(/\/plans\//);
    wrong.push(...(await lookAtAll(page)));
    await context.close();
    assert.deepEqual([...wrong, ...watch.take()], []);
  });
});
