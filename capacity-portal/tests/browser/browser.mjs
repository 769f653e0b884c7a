// Chromium, and the errors that pages may not cause in it.
import { chromium } from "playwright-core";

/** A new browser that makes no background requests. */
export const launch = (program) => chromium.launch({
  executablePath: program,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** Collects errors and foreign requests of a browser context. */
export class Watch {
  constructor(context, base) {
    this.wrong = [];
    this.expected = [];
    const note = (page, what) => this.wrong.push(`${new URL(page.url(), base).pathname}: ${what}`);
    context.on("request", (request) => {
      const url = new URL(request.url());
      if (!["data:", "blob:", "about:"].includes(url.protocol) && url.origin !== base) {
        this.wrong.push(`${request.frame().url()} requests from another host: ${url.origin}`);
      }
    });
    context.on("page", (page) => {
      page.on("pageerror", (error) => note(page, error.stack ?? String(error)));
      page.on("console", (message) => {
        if (!["error", "warning"].includes(message.type())) return;
        const at = this.expected.findIndex((text) => message.text().includes(text));
        if (at >= 0) this.expected.splice(at, 1);
        else note(page, message.text());
      });
    });
  }

  /** One message with this text is expected. */
  expect(text) {
    this.expected.push(text);
  }

  /** The errors since the last call. */
  take() {
    return this.wrong.splice(0);
  }
}
