// A small generated region, served by `ras up` with simulated moves.
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const SMALL = ["--servers", "1500", "--reservations", "10", "--msbs", "9"];

/** A region that is served until `stop`. */
export class Region {
  /**
   * Starts the program; the server answers when this returns. `settings`: further lines of its file of settings; `size`: of
   * the region.
   */
  static async start(ras, settings = "", size = SMALL) {
    // Paths of sockets are limited in length; Postgres runs as another user if this is root.
    const folder = mkdtempSync(join(tmpdir(), "ras-pages-"));
    chmodSync(folder, 0o711);
    const region = new Region();
    Object.assign(region, { folder, token: randomBytes(24).toString("base64url"), log: join(folder, "log") });
    const snapshot = join(folder, "region");
    const made = spawnSync(ras, ["snapshot", "generate", "--quiet", ...size, "--state", "steady", "--seed", "7", "--out", snapshot], { encoding: "utf8" });
    if (made.status !== 0) throw new Error(`generating the region failed: ${made.stderr}`);
    writeFileSync(join(folder, "token"), region.token + "\n", { mode: 0o600 });
    writeFileSync(join(folder, "ras.toml"), `
      [portal]
      read = "token"
      [[portal.tokens]]
      name = "browser"
      roles = ["admin"]
      token_file = "${join(folder, "token")}"
      ${settings}
    `);
    region.process = spawn(ras, ["up", snapshot, "--data", join(folder, "store"), "--config", join(folder, "ras.toml"),
      "--listen", "127.0.0.1:0", "--agent", "simulated", "--output", "json"], { stdio: ["ignore", "pipe", "pipe"] });
    // If the test is killed, the server ends, too.
    process.once("exit", () => region.process.kill("SIGINT"));
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
    region.process.stderr.pipe(createWriteStream(region.log));
    region.ended = new Promise((ended) => region.process.once("exit", ended));
    const stopped = region.ended.then(() => {
      throw new Error(`ras up ended: ${readFileSync(region.log, "utf8")}`);
    });
    try {
      region.base = "http://" + (await Promise.race([region.#address(), stopped]));
      return region;
    } catch (error) {
      await region.stop();
      throw error;
    }
  }

  /** The address from the JSON document that the program prints, in any number of lines. */
  async #address() {
    let text = "";
    for await (const line of createInterface({ input: this.process.stdout })) {
      text += line;
      try {
        const { http } = JSON.parse(text);
        this.process.stdout.resume();
        return http;
      } catch {
        // The document is not complete yet.
      }
    }
    return new Promise(() => {});
  }

  /** Ends the server; returns the errors of its log. */
  async stop() {
    this.process.kill("SIGINT");
    const code = await this.ended;
    const errors = readFileSync(this.log, "utf8").split("\n").filter((line) => /ERROR|panicked/.test(line));
    rmSync(this.folder, { recursive: true, force: true });
    if (code !== 0) errors.push(`ras up ended with ${code}`);
    return errors;
  }
}
