/** `keyhole witness`: its folder, its answers over HTTP, and what is left of it after kill -9. */

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sha256Of } from "../../src/core/hash.ts";
import {
  cosignedAt,
  encodeVerifier,
  encodeWitness,
  parseWitness,
  signerOf,
  type Verifier,
  witnessOf,
} from "../../src/record/note.ts";
import { leafHash, type Node, proveConsistency, Tree } from "../../src/record/tree.ts";
import { signTreeHead } from "../../src/record/tree-note.ts";
import { encodeSubmission } from "../../src/record/witness.ts";
import { moment } from "../support/clock.ts";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { runBinary } from "../support/keyhole.ts";
import { startNotary } from "../support/notary.ts";
import { freePort } from "../support/port.ts";
import { onBoth, siteOf } from "../support/server.ts";
import { startWitness } from "../support/witness.ts";

setDefaultTimeout(120_000);

const log = signerOf("keyhole/0123456789abcdef", new Uint8Array(32).fill(7));
const folder = newFolder();

/** A log of one leaf more for each size. */
function growing(prefix: string) {
  const tree = new Tree();
  const nodes = new Map<string, Buffer>();
  const notes = [""];
  const name = ({ level, at }: Node) => `${level}/${at}`;
  return {
    /** The request to sign `size`, for a witness that signed `old`. */
    submission: async (old: number, size: number) => {
      while (tree.size < size) {
        const leaf = tree.size;
        tree.append(leafHash(`${prefix} ${leaf}`)).forEach((node, level) => {
          nodes.set(name({ level, at: (leaf + 1) / 2 ** level - 1 }), node);
        });
        notes.push(signTreeHead({ size: tree.size, root: tree.root, acceptedAt: 0 }, log));
      }
      const read = async (asked: readonly Node[]) => asked.map((node) => nodes.get(name(node)) as Buffer);
      return encodeSubmission(old, old === 0 ? [] : await proveConsistency(old, size, read), notes[size] ?? "");
    },
    note: (size: number) => notes[size] ?? "",
  };
}

const ours = growing("ours");
const options = { folder, logs: [encodeVerifier(log)] };
const state = join(folder, `${sha256Of(log.name)}.checkpoint`);

/** Has five leaves signed, unless as many are. */
async function signFive() {
  const witness = await startWitness(options);
  await witness.submit(await ours.submission(0, 5));
  await witness.stop();
}

describe("a witness", () => {
  test("takes several logs and keys", async () => {
    const other = signerOf("keyhole/fedcba9876543210", new Uint8Array(32).fill(9));
    const mine = join(folder, "of-several");
    const witness = await startWitness({ folder: mine, logs: [...options.logs, encodeVerifier(other)] });
    expect(witness.origin).toStartWith("http://127.0.0.1:");
    await witness.stop();
  });

  test("makes its key at first, with mode 0600, prints it, and keeps it and its name", async () => {
    const first = await startWitness({ ...options, name: "witness.example" });
    expect(first.key).toStartWith("witness.example+");
    expect(statSync(join(folder, "witness.key")).mode & 0o777).toBe(0o600);
    const second = await runBinary(args("--port", "0"), {});
    expect(second).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("Another witness uses") });
    await first.stop();
    expect((await startAndStop()).key).toBe(first.key);
    const renamed = await runBinary(args("--port", "0", "--name", "other"), {});
    expect(renamed).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("is called witness.example") });
  });

  test("signs, shows what it signed, and answers old sizes, forks, strangers and 10 MiB", async () => {
    const witness = await startWitness(options);
    const key = parseWitness(witness.key) as Verifier;
    const signed = await witness.submit(await ours.submission(0, 3));
    expect(signed.status).toBe(200);
    expect(cosignedAt(ours.note(3) + (await signed.text()), key)).toBeGreaterThan(1_700_000_000_000);
    const shown = await fetch(`${witness.origin}/${sha256Of(log.name)}/checkpoint`);
    expect([shown.status, await shown.text()]).toEqual([200, readFileSync(state, "utf8")]);
    expect(cosignedAt(readFileSync(state, "utf8"), key)).toBeDefined();
    const old = await witness.submit(await ours.submission(0, 5));
    expect([old.status, old.headers.get("content-type"), await old.text()]).toEqual([409, "text/x.tlog.size", "3\n"]);
    const fork = growing("fork");
    expect((await witness.submit(await fork.submission(3, 5))).status).toBe(422);
    expect((await witness.submit(await ours.submission(3, 5))).status).toBe(200);
    expect(
      (
        await witness.submit(
          encodeSubmission(
            0,
            [],
            signTreeHead({ size: 1, root: leafHash("x"), acceptedAt: 0 }, signerOf("keyhole/f", new Uint8Array(32))),
          ),
        )
      ).status,
    ).toBe(404);
    expect((await witness.submit("x".repeat(10 * 1024 * 1024)).catch(() => ({ status: 413 }))).status).toBe(413);
    for (const path of ["/", "/x/checkpoint", "/witness.key", `/${sha256Of("x")}/checkpoint`, "/add-checkpoint"]) {
      expect((await fetch(`${witness.origin}${path}`)).status).toBe(404);
    }
    await witness.stop();
  });

  test("answers a checkpoint that it has signed with the stored line: nothing is written or logged", async () => {
    await signFive();
    const witness = await startWitness(options);
    const again = ours.submission(5, 5);
    const before = [readFileSync(state, "utf8"), statSync(state).ino];
    const answers = await Promise.all(
      Array.from({ length: 20 }, async () => (await witness.submit(await again)).text()),
    );
    expect(new Set(answers).size).toBe(1);
    expect(before[0]).toBe(ours.note(5) + answers[0]);
    expect([readFileSync(state, "utf8"), statSync(state).ino]).toEqual(before);
    await witness.stop();
    expect(witness.said().stdout).not.toContain("cosigned");
  });

  test("has signed nothing that it does not remember, whenever it is killed", async () => {
    await signFive();
    let signed = 5;
    for (let round = 0; round < 12; round++) {
      const witness = await startWitness(options);
      const remembered = Number(await (await witness.submit(await ours.submission(0, signed + 1))).text());
      expect(remembered).toBeGreaterThanOrEqual(signed);
      signed = remembered;
      const asked = (async () => {
        for (;;) {
          const body = await ours.submission(signed, signed + 1);
          if ((await witness.submit(body)).status !== 200) throw new Error("refused");
          signed += 1;
        }
      })().catch((error: Error) => error.message);
      await moment(round * 7);
      await witness.stop("SIGKILL");
      expect(await asked).not.toBe("refused");
    }
    const witness = await startWitness(options);
    // The answer that got lost is given again.
    const size = Number(await (await witness.submit(await ours.submission(0, 1))).text());
    expect((await witness.submit(await ours.submission(size, size))).status).toBe(200);
    expect((await witness.submit(await growing("fork").submission(size, size))).status).toBe(409);
    await witness.stop();
    expect(readdirSync(folder).filter((name) => name.endsWith(".checkpoint"))).toHaveLength(1);
  });

  test("signs nothing if its memory was changed", async () => {
    await signFive();
    const note = readFileSync(state, "utf8");
    writeFileSync(state, note.replace(/\n\d+\n/, "\n1\n"));
    const witness = await startWitness(options);
    expect((await witness.submit(await ours.submission(1, 2))).status).toBe(500);
    writeFileSync(state, note);
    expect((await witness.submit(await ours.submission(0, 2))).status).toBe(409);
    await witness.stop();
  });
});

onBoth("a notary with two witnesses", (dialect) => {
  const site = siteOf(dialect, { staging: { TOKEN: "canary-of-the-witness" } });

  test("has the signature of the one that is there, and a proof that it signed", async () => {
    const first = await startNotary(site);
    await first.says("signed_checkpoint");
    expect(await first.stop()).toBe(0);
    const { keys } = (await site.json(["audit", "key"])) as { keys: string[] };
    const own = newFolder();
    const witness = await startWitness({ folder: own, logs: keys, name: "witness.example" });
    const away = encodeWitness(witnessOf("away.example", new Uint8Array(32).fill(9)));
    const KEYHOLE_WITNESS = `${witness.setting},http://127.0.0.1:${freePort()}#${away}`;
    const notary = await startNotary(site, { KEYHOLE_WITNESS });
    await eventually(() => notary.said().includes('"event":"cosigned"') && notary.said().includes('"witness_away"'));
    await eventually(async () =>
      (await (await fetch(`${notary.ops}/metrics`)).text()).includes("keyhole_witnesses_away 1"),
    );
    expect((await fetch(`${notary.ops}/readyz`)).status).toBe(200);
    expect(await notary.stop()).toBe(0);
    await witness.stop();
    const proof = (await site.here(["audit", "prove", "commands:1"])).stdout;
    const check = (key: string) =>
      runBinary(["audit", "check", "-", "--key", keys.join(), "--witness", key], { stdin: proof });
    const stderr = expect.stringContaining("cosigned by witness.example at ");
    expect(await check(witness.key)).toMatchObject({ exitCode: 0, stderr });
    expect((await check(away)).exitCode).toBe(1);
  });

  test("is killed after the witness signed and before it has the signature: the next one gets it", async () => {
    const { keys } = (await site.json(["audit", "key"])) as { keys: string[] };
    const own = newFolder();
    const witness = await startWitness({ folder: own, logs: keys, name: "killed.example" });
    const signed = Promise.withResolvers<void>();
    // Between the two: the answer never arrives.
    const between = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        const { pathname } = new URL(request.url);
        const asked = await fetch(`${witness.origin}${pathname}`, {
          method: request.method,
          ...(request.method === "POST" && { body: await request.text() }),
        });
        if (pathname !== "/add-checkpoint" || asked.status !== 200) return asked;
        await asked.text();
        signed.resolve();
        return new Promise<Response>(() => {});
      },
    });
    const lost = `http://127.0.0.1:${between.port}#${witness.key}`;
    const first = await startNotary(site, { KEYHOLE_WITNESS: lost });
    await signed.promise;
    await first.stop("SIGKILL");
    await between.stop(true);
    const stored = () => site.sql("select size from audit_cosignatures where witness like 'killed.example%'");
    expect(await stored()).toEqual([]);
    // More is on record by now, so the witness has signed an old size that no row has.
    await site.json(["var", "set", "acme/web", "staging", "MORE"], "x");
    const second = await startNotary(site, { KEYHOLE_WITNESS: witness.setting });
    await second.says('"witness":"killed.example"');
    expect(second.said()).not.toContain("witness_away");
    expect(await second.stop()).toBe(0);
    expect(await stored()).toHaveLength(1);
    const proof = (await site.here(["audit", "prove", "commands:1"])).stdout;
    const check = ["audit", "check", "-", "--key", keys.join(), "--witness", witness.key];
    expect(await runBinary(check, { stdin: proof })).toMatchObject({ exitCode: 0 });
    await witness.stop();
  });

  test("does not start if a witness is named without its key", async () => {
    for (const wrong of ["https://witness.example", "https://witness.example#key", "http://witness.example#key", ""]) {
      const command = dialect === "sqlite" ? "serve" : "notary";
      const env = { ...site.env, PORT: "0", KEYHOLE_WITNESS: wrong };
      const ran = await runBinary([command], { cwd: site.folder, env });
      expect(ran).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("KEYHOLE_WITNESS") });
    }
  });
});

function args(...more: readonly string[]): string[] {
  return ["witness", "--folder", folder, ...options.logs.flatMap((key) => ["--log", key]), ...more];
}

async function startAndStop() {
  const witness = await startWitness(options);
  await witness.stop();
  return witness;
}
