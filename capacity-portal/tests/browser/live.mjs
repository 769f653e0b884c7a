// A page that follows the region, and the region behind it.
import assert from "node:assert/strict";

/** The longest time for a page to show a change, in milliseconds. */
const SHOWN = 30_000;

/** Calls the API of a region. */
export const api = (region) => async (method, path, body) => {
  const headers = { authorization: `Bearer ${region.token}`, "content-type": "application/json" };
  const answer = await fetch(region.base + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return text === "" ? null : JSON.parse(text);
};

/** Hides a page as another tab does, or shows it again. */
export const hide = (page, hidden) => page.evaluate((hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

/** A page that must not be loaded again while it follows. */
export class Following {
  static async of(page) {
    await page.evaluate(() => { globalThis.loadedOnce = true; });
    return new Following(page);
  }

  constructor(page) {
    this.page = page;
  }

  /** Waits until an element has a text, without a reload. */
  async shows(selector, text) {
    await this.page.locator(selector).filter({ hasText: text }).first().waitFor({ timeout: SHOWN });
    assert.ok(await this.page.evaluate(() => globalThis.loadedOnce), "the page was loaded again");
  }

  /** What the page says of its age. */
  asOf() {
    return this.page.locator("[data-as-of]").innerText();
  }
}
