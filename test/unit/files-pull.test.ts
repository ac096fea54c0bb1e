import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { Client } from "../../src/client/client.ts";
import { pullFiles } from "../../src/client/files-pull.ts";
import { failing } from "../support/failing.ts";
import { newFolder } from "../support/folder.ts";
import { honestly, liarStarter, type Truth } from "../support/liar.ts";

const startLiar = liarStarter();

test("contents that could not be written are not read again, unless they changed", async () => {
  const folder = newFolder();
  const a = { path: "a", content: Buffer.from("content of a") };
  const b = { path: "b", content: Buffer.from("content of b") };
  let truth: Truth = { project: "web", environment: "production", variables: {}, files: [a, b] };
  let inTheWay = true;
  const liar = await startLiar((question) => {
    const readsContent = question.query.get("metadataOnly") === null;
    if (readsContent && inTheWay) mkdirSync(join(folder, "b"), { recursive: true });
    return honestly(truth, question);
  });
  const contentsRead = () =>
    liar.questions.filter(({ query }) => query.get("metadataOnly") === null).map(({ query }) => query.getAll("path"));
  const credential = async () => `kh_${"k".repeat(49)}`;
  const api = { root: `${liar.origin}/api/v1`, credential, timeoutMs: 60_000, waitMs: 0, say: () => {} };
  const source = { asked: { project: "web", environment: "production" } as const, client: new Client(api) };
  const memory = { unwritten: new Map<string, Uint8Array>() };
  const ask = { root: folder, paths: [], memory };
  const pull = () => pullFiles(source, ask, { fetching: () => {}, writing: () => {}, modes: () => {} });
  expect(await failing(pull())).toMatchObject({ code: "obstructed" });
  rmdirSync(join(folder, "b"));
  inTheWay = false;
  expect(contentsRead()).toEqual([[]]);
  truth = { ...truth, files: [a, { ...b, content: Buffer.from("another content of b") }] };
  expect(await pull()).toMatchObject({ written: ["a", "b"] });
  expect(contentsRead()).toEqual([[], ["b"]]);
  expect(readFileSync(join(folder, "a"), "utf8")).toBe("content of a");
  expect(readFileSync(join(folder, "b"), "utf8")).toBe("another content of b");
  expect(memory.unwritten.size).toBe(0);
});
