// Takes the pictures of README.md: RAS=target/debug/ras CHROMIUM=chromium node pictures.mjs docs
import { join } from "node:path";
import { launch } from "./browser.mjs";
import { Region } from "./region.mjs";

const folder = process.argv[2];
const region = await Region.start(process.env.RAS, '[service]\ndeadline = "20s"', ["--servers", "5000", "--reservations", "40", "--msbs", "36"]);
const browser = await launch(process.env.CHROMIUM);
try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 1000 }, colorScheme: "light" });
  page.setDefaultTimeout(120_000);
  await page.goto(region.base);
  await page.getByLabel("Token").fill(region.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  // The first solve mends what the generated region lacks.
  await page.locator("#solves").filter({ hasText: "published" }).waitFor();
  await page.locator("#standing").filter({ hasText: "All guarantees are in force" }).waitFor();
  await page.screenshot({ path: join(folder, "overview.png") });
  await page.goto(`${region.base}/request`);
  await page.getByLabel("Reservation", { exact: true }).fill("checkout");
  await page.getByLabel("Capacity, RRU", { exact: true }).fill("600");
  await page.getByLabel("Owner", { exact: true }).fill("shop");
  await page.getByLabel("C2-S1", { exact: true }).fill("1");
  await page.getByText(/^Reason \(/).first().waitFor();
  await page.screenshot({ path: join(folder, "request.png"), fullPage: true });
} finally {
  await browser.close();
  await region.stop();
}
