// axe checks of every linked page: wide and narrow, light and dark.
import axe from "axe-core";

const WIDTHS = [1440, 390];
const COLOURS = ["light", "dark"];

/** The kind of a page: `/reservations/a` and `/reservations/b?c=d` have the same handler. */
const kind = (url) => {
  const [, first, ...rest] = url.pathname.split("/");
  return `${first} ${rest.length}`;
};

/** Serious and critical findings of axe. */
async function findings(page) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(
    ({ id, impact, help, nodes }) =>
      `${impact} ${id}: ${help}\n` + nodes.slice(0, 3).map((node) => `      ${node.html.slice(0, 200)}\n      ${node.failureSummary.replaceAll("\n", " ")}`).join("\n"));
}

/** Errors of the current page in both colour schemes. */
async function look(page) {
  const wrong = [];
  for (const colour of COLOURS) {
    await page.emulateMedia({ colorScheme: colour });
    for (const finding of await findings(page)) wrong.push(`${colour}: ${finding}`);
  }
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (over > 0) wrong.push(`${over} pixels wider than the screen`);
  return wrong;
}

/** Errors of the current page in all widths and colour schemes. */
export async function lookAtAll(page) {
  const wrong = [];
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    for (const what of await look(page)) wrong.push(`${new URL(page.url()).pathname} at ${width}, ${what}`);
  }
  return wrong;
}

/** Checks one page of every kind that is linked from these; returns the paths and the errors. */
export async function crawl(context, base, from) {
  const page = await context.newPage();
  const queue = from.map((path) => new URL(path, base));
  const kinds = new Set(queue.map(kind));
  const wrong = [];
  const seen = [];
  while (queue.length > 0) {
    const url = queue.shift();
    const path = url.pathname + url.search;
    const { "content-type": content } = (await context.request.get(url.href)).headers();
    if (!content?.startsWith("text/html")) continue;
    seen.push(path);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      const answer = await page.goto(url.href, { waitUntil: "load" });
      if (answer.status() !== 200) wrong.push(`${path}: answers ${answer.status()}`);
      for (const what of await look(page)) wrong.push(`${path} at ${width}, ${what}`);
      const links = await page.locator("a[href]").evaluateAll((all) => all.map((a) => a.href));
      for (const link of links.map((href) => new URL(href))) {
        // The API browser is a foreign library.
        if (link.origin !== base || link.pathname.startsWith("/api") || kinds.has(kind(link))) continue;
        kinds.add(kind(link));
        link.hash = "";
        queue.push(link);
      }
    }
  }
  await page.close();
  return { seen, wrong };
}
