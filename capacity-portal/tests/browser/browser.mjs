// Chromium, and what pages may not do in it.
import { chromium } from "playwright-core";

/** A browser of its own, which asks nobody but the pages' server. */
export const launch = (program) => chromium.launch({
  executablePath: program,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** Sees what goes wrong in a context behind the scenes. */
export class Watch {
  constructor(context, base) {
    this.wrong = [];
    this.expected = [];
    const note = (page, what) => this.wrong.push(`${new URL(page.url(), base).pathname}: ${what}`);
    context.on("request", (request) => {
      const url = new URL(request.url());
      if (!["data:", "blob:", "about:"].includes(url.protocol) && url.origin !== base) {
        this.wrong.push(`${request.frame().url()} asks another host: ${url.origin}`);
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

  /** One message with this text is meant. */
  expect(text) {
    this.expected.push(text);
  }

  /** What went wrong since it was asked last. */
  take() {
    return this.wrong.splice(0);
  }
}
