// Pages on which forecasts are acted upon: a request that follows demand, and servers on order.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { lookAtAll } from "./accessibility.mjs";
import { launch, Watch } from "./browser.mjs";
import { Keys, Mouse } from "./hands.mjs";
import { api } from "./live.mjs";
import { Region } from "./region.mjs";

let region, browser, call;

before(async () => {
  region = await Region.start(process.env.RAS);
  browser = await launch(process.env.CHROMIUM);
  call = api(region);
});

after(async () => {
  await browser?.close();
  if (region) assert.deepEqual(await region.stop(), []);
});

for (const [turn, Hands] of [Mouse, Keys].entries()) {
  describe(Hands.what, () => {
    let context, watch, page, hands, name;

    before(async () => {
      context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
      watch = new Watch(context, region.base);
      page = await context.newPage();
      page.setDefaultTimeout(60_000);
      hands = new Hands(page);
      await page.goto(region.base);
      await hands.fill("Token", region.token);
      await hands.press("button", "Sign in");
      await page.getByRole("heading", { level: 1 }).waitFor();
      const { reservations } = await call("GET", "/v1/reservations?limit=100");
      name = reservations.filter((of) => of.kind === "guaranteed")[turn].reservation;
    });

    after(async () => {
      await context?.close();
      assert.deepEqual(watch?.take(), []);
    });

    const section = () => page.locator("#autosize");
    const at = () => `/v1/reservations/${encodeURIComponent(name)}/autosize`;
    const settings = async () => (await call("GET", at())).settings;
    const open = async (summary) => {
      await page.goto(`${region.base}/reservations/${encodeURIComponent(name)}`);
      await hands.open(summary);
    };

    test("lets a request follow demand", async () => {
      await open("Let the request follow demand");
      await section().getByText("No quantile and cooldown are recommended: 0 days of demand are known").waitFor();
      await hands.fill("Hours covered, percent", "95");
      await hands.fill("At least, RRU", "1");
      await hands.fill("At most, RRU", "100000");
      await hands.fill("Cooldown, hours", "12");
      await hands.press("button", "Follow demand");
      await section().getByText("shrinks 12").waitFor();
      const { quantile, min_rru, max_rru, cooldown_seconds, set_by } = await settings();
      assert.deepEqual([quantile, min_rru, max_rru, cooldown_seconds, set_by], [0.95, 1, 100_000, 43_200, "browser"]);
      assert.deepEqual(await lookAtAll(page), []);
    });

    test("names a field that is out of range, and changes nothing", async () => {
      await open("Change or switch off");
      await hands.fill("Cooldown, hours", "1000");
      watch.expect("422");
      await hands.press("button", "Save settings");
      await page.getByText("it must be from one hour to 31 days").first().waitFor();
      assert.equal((await settings()).cooldown_seconds, 43_200);
    });

    test("does not overwrite what another has set meanwhile", async () => {
      await open("Change or switch off");
      await hands.fill("Hours covered, percent", "80");
      await call("PUT", at(), { quantile: 0.9, min_rru: 2, max_rru: 50_000 });
      watch.expect("412");
      await hands.press("button", "Save settings");
      await page.getByText("it has changed since that version; read it again").waitFor();
      await page.getByText("412").waitFor();
      assert.deepEqual([(await settings()).quantile, (await settings()).max_rru], [0.9, 50_000]);
      // Read again, it has the settings of the other, and can be changed.
      await open("Change or switch off");
      assert.equal(await page.getByLabel("Hours covered, percent").inputValue(), "90");
      await hands.fill("Hours covered, percent", "80");
      await hands.press("button", "Save settings");
      await section().getByText("80").first().waitFor();
      assert.equal((await settings()).quantile, 0.8);
    });

    test("switches it off, but not from an old page", async () => {
      await open("Change or switch off");
      await call("PUT", at(), { quantile: 0.7, min_rru: 2, max_rru: 50_000 });
      watch.expect("412");
      await hands.press("button", "Switch off");
      await page.getByText("it has changed since that version; read it again").waitFor();
      assert.equal((await settings()).quantile, 0.7);
      await open("Change or switch off");
      await hands.press("button", "Switch off");
      await section().getByText("Off: the request stays until it is changed.").waitFor();
      assert.equal(await settings(), null);
    });

    test("enters an order, changes it, and says that it has arrived", async () => {
      const day = (days) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
      const orders = async () => (await call("GET", "/ops/v1/hardware-orders?filter=state=open")).orders;
      await page.goto(`${region.base}/supply`);
      await hands.open("Enter an order");
      // "Servers" is a column of the table as well.
      await page.locator("#order-servers").fill("12");
      // A field of dates takes its parts as the language of the browser orders them.
      await page.getByLabel("Expected on").last().fill(day(20));
      await hands.press("button", "Enter order");
      const row = page.locator("#orders tbody tr").first();
      await row.getByText(day(20)).waitFor();
      assert.deepEqual(await lookAtAll(page), []);
      const [entered] = await orders();
      assert.deepEqual([entered.servers, entered.expected_on, entered.ordered_by], [12, day(20), "browser"]);

      // An order that another has changed is not overwritten.
      await page.locator("#orders summary", { hasText: "Change" }).first().click();
      await call("PATCH", `/ops/v1/hardware-orders/${entered.order}`, { servers: 10 });
      watch.expect("412");
      await hands.press("button", "Save order");
      await page.getByText("412").waitFor();
      await page.goto(`${region.base}/supply`);
      await page.locator("#orders summary", { hasText: "Change" }).first().click();
      assert.equal(await page.locator("#orders input[name=servers]").first().inputValue(), "10");
      await page.getByLabel("Expected on").first().fill(day(30));
      await hands.press("button", "Save order");
      await row.getByText(day(30)).waitFor();
      await page.locator("#orders summary", { hasText: "Change" }).first().click();
      await hands.press("button", /^Arrived/);
      await page.getByText("No servers are on order.").waitFor();
      assert.deepEqual(await orders(), []);
    });
  });
}
