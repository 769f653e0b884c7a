// Two ways of using a page: with a mouse, and with a keyboard alone. What is done is said by role and
// name, as a reader of screens says them.
import assert from "node:assert/strict";

/** More stops than any page has between two things. */
const STOPS = 400;

/** Points and clicks. */
export class Mouse {
  static what = "with a mouse";

  constructor(page) {
    this.page = page;
  }

  async press(role, name) {
    await this.page.getByRole(role, { name, exact: typeof name === "string" }).first().click();
  }

  async fill(label, text) {
    await this.page.getByLabel(label, { exact: true }).fill(text);
  }

  async choose(label, option) {
    await this.page.getByLabel(label, { exact: true }).selectOption({ label: option });
  }
}

/** Has no mouse: goes from stop to stop, and sees where it is. */
export class Keys {
  static what = "with the keyboard alone";

  constructor(page) {
    this.page = page;
  }

  /** Goes on until this has the focus, which must be seen. */
  async #reach(locator, what) {
    await locator.waitFor();
    const wanted = await locator.elementHandle();
    const here = () => this.page.evaluate((element) => element === document.activeElement, wanted);
    for (let stop = 0; !(await here()); stop += 1) {
      assert.ok(stop < STOPS, `${new URL(this.page.url()).pathname}: the keyboard does not reach ${what}`);
      await this.page.keyboard.press("Tab");
    }
    const ring = await wanted.evaluate((element) => {
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
      return (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
    });
    assert.ok(ring, `${new URL(this.page.url()).pathname}: nobody sees that ${what} has the focus`);
  }

  async press(role, name) {
    await this.#reach(this.page.getByRole(role, { name, exact: typeof name === "string" }).first(), `${role} ${name}`);
    await this.page.keyboard.press("Enter");
  }

  async fill(label, text) {
    await this.#reach(this.page.getByLabel(label, { exact: true }), label);
    await this.page.keyboard.press("ControlOrMeta+A");
    await this.page.keyboard.press("Delete");
    await this.page.keyboard.type(text);
  }

  async choose(label, option) {
    await this.#reach(this.page.getByLabel(label, { exact: true }), label);
    await this.page.keyboard.type(option);
  }
}
