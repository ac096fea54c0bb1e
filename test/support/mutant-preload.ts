import { afterAll, afterEach, beforeEach } from "bun:test";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { configureGlobal, readConfigureGlobal } from "fast-check";
import { mutants } from "./mutant.ts";

/** Gives each test its fault, as `test/mutants.ts` wants, and notes which ones it comes to. */
const plan = process.env["KEYHOLE_TEST_MUTANTS"] ?? "";
const shown = JSON.parse(readFileSync(plan, "utf8")) as number[];
const reached: number[][] = [];
const tookMs: number[] = [];
let test = -1;
let begunAtMs = 0;
configureGlobal({ ...readConfigureGlobal(), endOnFailure: true }); // a smaller example would tell nothing more

beforeEach(() => {
  appendFileSync(`${plan}.begun`, ".");
  test += 1;
  begunAtMs = performance.now();
  mutants.reached.clear();
  mutants.active = shown[test] ?? 0;
});

afterEach(() => {
  tookMs[test] = performance.now() - begunAtMs;
  reached[test] = [...mutants.reached];
  mutants.active = 0;
});

afterAll(() => writeFileSync(`${plan}.reached`, JSON.stringify({ reached, tookMs })));
