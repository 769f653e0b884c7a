// Two ways of using a page: with a mouse, and with the keyboard alone. Elements are found by role and
// name, as screen readers announce them.
import assert from "node:assert/strict";

/** More tab stops than any page has. */
const STOPS = 400;

/** Uses a page with a mouse. */
export class Mouse {
  static what = "with a mouse";

  constructor(page) {
    this.page = page;
  }

  /** Presses an element; `within` is the page, or a part of it. */
  async press(role, name, within = this.page) {
    await within.getByRole(role, { name, exact: typeof name === "string" }).first().click();
  }

  async tick(checkbox) {
    await checkbox.check();
  }

  /** Opens what a summary hides. */
  async open(text) {
    await this.page.locator("summary").filter({ hasText: text }).first().click();
  }

  async fill(label, text) {
    await this.page.getByLabel(label, { exact: true }).fill(text);
  }

  async choose(label, option) {
    await this.page.getByRole("combobox", { name: label, exact: true }).selectOption({ label: option });
  }
}

/** Uses a page with the keyboard alone: moves by tab stops, each with a visible focus. */
export class Keys {
  static what = "with the keyboard alone";

  constructor(page) {
    this.page = page;
  }

  /** Presses Tab until the element has the focus, which must be visible. */
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
    assert.ok(ring, `${new URL(this.page.url()).pathname}: the focus of ${what} is not visible`);
  }

  async press(role, name, within = this.page) {
    await this.#reach(within.getByRole(role, { name, exact: typeof name === "string" }).first(), `${role} ${name}`);
    await this.page.keyboard.press("Enter");
  }

  async tick(checkbox) {
    await this.#reach(checkbox, "the checkbox");
    if (!(await checkbox.isChecked())) await this.page.keyboard.press("Space");
  }

  async open(text) {
    await this.#reach(this.page.locator("summary").filter({ hasText: text }).first(), text);
    await this.page.keyboard.press("Enter");
  }

  async fill(label, text) {
    await this.#reach(this.page.getByLabel(label, { exact: true }), label);
    await this.page.keyboard.press("ControlOrMeta+A");
    await this.page.keyboard.press("Delete");
    await this.page.keyboard.type(text);
  }

  async choose(label, option) {
    await this.#reach(this.page.getByRole("combobox", { name: label, exact: true }), label);
    await this.page.keyboard.type(option);
  }
}
