import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import puppeteer, { type Page } from "puppeteer-core";
import { findProgram } from "../test/support/programs.ts";
import type { Backend } from "./rig.ts";

/* How long a person waits for the grid of many names, in Chromium, on the compiled program. */

const sizes = [1000, 10_000];

/**
 * Measures the grid on each database.
 * @param repeats - page loads for each size; the figures are medians
 * @returns rows of a table, its heading first
 * @throws Error if Chromium is missing
 */
export async function measureDashboard(
  binary: string,
  folder: string,
  backends: readonly Backend[],
  repeats: number,
): Promise<string[][]> {
  const chromium = findProgram("chromium");
  if (chromium === undefined) throw new Error("The dashboard is measured in Chromium: install it.");
  const browser = await puppeteer.launch({
    executablePath: chromium,
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  const table = [["names in three environments", "database", "first byte", "ready", "filter", "filter, at most"]];
  try {
    for (const { name, settings } of backends) {
      const env = { ...settings, KEYHOLE_ACTOR: "bench" };
      const run = (args: readonly string[], stdin = "") => runToEnd([binary, ...args], env, stdin);
      await run(["org", "create", "acme"]);
      for (const size of sizes) await fill(run, folder, size);
      const child = Bun.spawn([binary, "dashboard"], { env, stdin: "ignore", stdout: "pipe", stderr: "ignore" });
      try {
        const reader = child.stdout.getReader();
        const link = new TextDecoder().decode((await reader.read()).value).trim();
        const page = await browser.newPage();
        await page.goto(link);
        await page.waitForSelector("header");
        for (const size of sizes) {
          const seen = await look(page, `${new URL(link).origin}/p/acme/p${size}/variables`, repeats);
          table.push([size.toLocaleString("en"), name, ...seen.map((ms) => `${Math.round(ms * 10) / 10} ms`)]);
        }
        await page.close();
      } finally {
        child.kill();
        await child.exited;
      }
    }
  } finally {
    await browser.close();
  }
  return table;
}

type Run = (args: readonly string[], stdin?: string) => Promise<void>;

/** A project whose names differ between environments in every third value. */
async function fill(run: Run, folder: string, size: number): Promise<void> {
  await run(["project", "create", `acme/p${size}`]);
  for (const environment of ["development", "staging", "production"]) {
    const lines = Array.from(
      { length: size },
      (_, at) => `NAME_${String(at).padStart(5, "0")}=${at % 3 ? at : environment}\n`,
    );
    const file = join(mkdtempSync(join(folder, "env-")), "all.env");
    await Bun.write(file, lines.join(""));
    await run(["var", "import", `acme/p${size}`, environment, file]);
  }
}

/** The first byte, the page ready for use, and the time from a letter in the filter to the new layout. */
async function look(page: Page, url: string, repeats: number): Promise<number[]> {
  const first: number[] = [];
  const ready: number[] = [];
  const filters: number[] = [];
  for (let at = 0; at <= repeats; at++) {
    await page.goto(url);
    const [firstByte, load] = (await page.evaluate(`(() => {
      const one = performance.getEntriesByType("navigation")[0];
      return [one.responseStart - one.requestStart, one.loadEventEnd];
    })()`)) as [number, number];
    const typed = (await page.evaluate(`(async () => {
      const field = document.querySelector("[data-filter]");
      const took = [];
      for (const text of ["0", "00", "001", "0012", "00123"]) {
        await new Promise(requestAnimationFrame);
        const startedAt = performance.now();
        field.value = text;
        field.dispatchEvent(new Event("input"));
        document.body.getBoundingClientRect();
        took.push(performance.now() - startedAt);
      }
      return took;
    })()`)) as number[];
    if (at === 0) continue; // the first load compiles what the others have
    first.push(firstByte);
    ready.push(load);
    filters.push(...typed);
  }
  return [median(first), median(ready), median(filters), Math.max(...filters)];
}

function median(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;
}

async function runToEnd(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  stdin: string,
): Promise<void> {
  const child = Bun.spawn([...command], { env, stdin: Buffer.from(stdin), stdout: "ignore", stderr: "pipe" });
  const said = await child.stderr.text();
  if ((await child.exited) !== 0) throw new Error(`${command.slice(1, 3).join(" ")} failed: ${said}`);
}
