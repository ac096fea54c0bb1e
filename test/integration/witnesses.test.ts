import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { proveAudit, provenPages } from "../../src/people/audit/audit-proof.ts";
import { createOrganization } from "../../src/people/projects/organizations.ts";
import { NewestCheckpoint } from "../../src/record/notary/newest-checkpoint.ts";
import { openSigners } from "../../src/record/notary/signers.ts";
import { startWitness } from "../../src/record/notary/witness-server.ts";
import { WitnessedHeads } from "../../src/record/notary/witnessed-heads.ts";
import { Witnesses } from "../../src/record/notary/witnesses.ts";
import { cosign, encodeWitness, noteText, witnessOf } from "../../src/record/note.ts";
import type { Proved } from "../../src/record/proof.ts";
import { treeEnd } from "../../src/record/store/tree-end.ts";
import { witnessedPath } from "../../src/record/tree-note.ts";
import { encodeSubmission, submissionBytesMax, submissionPath } from "../../src/record/witness.ts";
import type { Database } from "../../src/store/database.ts";
import { checkProof } from "../support/check-proof.ts";
import { newFolder } from "../support/folder.ts";
import { notaryOf } from "../support/notarize.ts";
import { visitorOf } from "../support/pages.ts";
import { describeBoth } from "../support/world.ts";

describeBoth("the notary's witnesses", (w) => {
  const folder = newFolder();
  const ours = witnessOf("witness.example", new Uint8Array(32).fill(8));
  let log: Readonly<Record<string, unknown>>[] = [];
  let database: Database;
  let signers: Awaited<ReturnType<typeof openSigners>>["signers"];
  const closing: (() => Promise<void>)[] = [];

  /** Appends something and signs it. @param accepts - as if the database had been put back, and that was accepted */
  const grow = async (accepts = false) => {
    await createOrganization(w.admin, { slug: `w-${crypto.randomUUID()}`, name: "W", plan: "pro" });
    await (await notaryOf(w, { database, signers, accepts })).round();
  };
  const witness = (port = 0, of = folder) => {
    const options = { folder: of, signer: ours, logs: signers, host: "127.0.0.1", log: () => {}, now: Date.now };
    const started = startWitness({ ...options, port });
    closing.push(started.stop);
    return started;
  };
  /** Something that answers in place of a witness. */
  const liar = (answer: (body: string) => Response | Promise<Response>) => {
    const fetch = async (request: Request) => answer(await request.text());
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
    closing.push(() => server.stop(true));
    return `http://127.0.0.1:${server.port}`;
  };
  const asking = (...urls: readonly string[]) => {
    const settings = urls.map((url) => ({ url, key: encodeWitness(ours) }));
    return new Witnesses(database, settings, (event) => log.push(event));
  };
  /** Of the newest entry of commands. */
  const lastReceipt = async () => {
    const [row] = await w.run("select max(last_seq) as seq from audit_segments where lane = 'commands'");
    return `commands:${row?.["seq"]}`;
  };
  const stored = async () => (await w.run("select * from audit_cosignatures")).length;
  const noteOf = (body: string) => body.slice(body.indexOf("\n\n") + 2);
  const reasons = () => log.filter(({ event }) => event === "witness_away").map(({ reason }) => reason);

  beforeAll(async () => {
    database = w.installation.open("notary");
    ({ signers } = await openSigners(database, w.admin.keyring, w.admin.systemKeys.audit));
    await grow();
  });
  afterEach(async () => {
    log = [];
    for (const close of closing.splice(0)) await close();
  });
  afterAll(() => database.close());

  const lies: Readonly<Record<string, (body: string) => Response | Promise<Response>>> = {
    "its answer has no signature by its key": () => new Response("— witness.example AAAA\n"),
    "it answered 503": () => new Response("", { status: 503 }),
    "it answered 302": () => new Response("", { status: 302, headers: { Location: "http://127.0.0.1/" } }),
    "it answered 409": () => new Response("1e3\n", { status: 409 }),
    "it did not answer within 5 s": () => new Promise<Response>(() => {}),
  };
  test.each(Object.entries(lies))("have not signed if one says this: %s", async (reason, answer) => {
    const witnesses = asking(liar(answer));
    await witnesses.ask();
    expect([reasons(), witnesses.away, await stored()]).toEqual([[reason], { [ours.name]: reason }, 0]);
    if (reason.includes("within")) return;
    await witnesses.ask();
    expect(reasons()).toHaveLength(1);
  });

  test("have not signed if one answers 10 MiB", async () => {
    const witnesses = asking(liar(() => new Response("x".repeat(10 * 1024 * 1024))));
    await witnesses.ask();
    expect([reasons(), await stored()]).toEqual([["its answer has no signature by its key"], 0]);
  });

  test("count only by their own key, and only for the head that they were shown", async () => {
    const stranger = witnessOf(ours.name, new Uint8Array(32).fill(9));
    const ofStranger = (body: string) => new Response(cosign(noteText(noteOf(body)) ?? "", stranger, Date.now()));
    const ofOther = () => new Response(cosign("keyhole/other\n1\nAAAA\n", ours, Date.now()));
    for (const answer of [ofStranger, ofOther]) {
      const witnesses = asking(liar(answer));
      await witnesses.ask();
      expect([Object.keys(witnesses.away), await stored()]).toEqual([[ours.name], 0]);
    }
  });

  test("sign what goes on, again after a lost answer, and while another one is away", async () => {
    const { origin } = witness();
    const gone = liar(() => new Response(""));
    await closing.pop()?.();
    const witnesses = asking(origin);
    await witnesses.ask();
    expect([witnesses.away, await stored()]).toEqual([{}, 1]);
    await grow();
    await witnesses.ask();
    expect(await stored()).toBe(2);
    // What was signed and not stored: the witness says its size, and signs that head again.
    await w.run("delete from audit_cosignatures");
    await witnesses.ask();
    expect([witnesses.away, await stored()]).toEqual([{}, 1]);
    await w.run("delete from audit_cosignatures");
    const other = encodeWitness(witnessOf("other.example", new Uint8Array(32).fill(9)));
    const settings = [
      { url: gone, key: other },
      { url: origin, key: encodeWitness(ours) },
    ];
    const both = new Witnesses(database, settings, (event) => log.push(event));
    await both.ask();
    expect([Object.keys(both.away), await stored()]).toEqual([["other.example"], 1]);
  });

  test("keep and show no signatures of strangers, who could make a note too long to be read", async () => {
    const first = witness();
    await asking(first.origin).ask();
    const path = witnessedPath(signers[0]?.name ?? "");
    const shown = await (await fetch(first.origin + path)).text();
    const logOnly = shown
      .split("\n")
      .filter((line) => !line.startsWith(`— ${ours.name} `))
      .join("\n");
    const start = encodeSubmission(0, [], logOnly);
    const line = `— j ${Buffer.alloc(90).toString("base64")}\n`;
    const own = `${logOnly.split("\n").at(-2)}\n`;
    for (const pad of [line, own]) {
      const { origin } = witness(0, newFolder()); // it has signed nothing yet
      const settings = [{ url: origin, key: encodeWitness(ours) }];
      const body =
        start + pad.repeat(Math.floor((submissionBytesMax - Buffer.byteLength(start)) / Buffer.byteLength(pad)));
      expect((await fetch(`${origin}${submissionPath}`, { method: "POST", body })).status).toBe(200);
      const lines = (await (await fetch(origin + path)).text()).split("\n\n")[1]?.split("\n");
      expect(lines).toEqual([own.trimEnd(), expect.stringContaining(`— ${ours.name} `), ""]);
      const heads = new WitnessedHeads(settings);
      await heads.refresh(signers);
      expect([heads.heads.length, heads.away]).toEqual([1, {}]);
    }
  });

  test("who accept and do not answer are waited for once, however often and with whatever keys they are asked", async () => {
    const silent = liar(() => new Promise<never>(() => {}));
    let waits = 0;
    const passed = { of: () => Promise.reject(new Error(`wait ${++waits}`)) };
    const settings = Array.from({ length: 8 }, () => ({ url: silent, key: encodeWitness(ours) }));
    const heads = new WitnessedHeads(settings, -1, passed);
    for (const log of [signers, signers, [...signers, ...signers]]) await heads.refresh(log);
    expect([waits, heads.heads]).toEqual([1, []]);
  });

  test("have not signed if a row says so, and no signature", async () => {
    await grow();
    const [head] = await w.run("select max(size) as size from audit_checkpoints_signed");
    const row = [Number(head?.["size"]), encodeWitness(ours), 1, "x"];
    await w.run("insert into audit_cosignatures (size, witness, at, line) values (?, ?, ?, ?)", row);
    const witnesses = asking(liar(() => new Response("", { status: 503 })));
    await witnesses.ask();
    expect(witnesses.away).toEqual({ [ours.name]: "it answered 503" });
    await w.run("delete from audit_cosignatures where line = 'x'");
  });

  test("who have signed another tree of the same size are said to be away", async () => {
    const { head } = await treeEnd(database);
    const witnesses = asking(liar(() => new Response(`${head?.size}\n`, { status: 409 })));
    await witnesses.ask();
    expect(reasons()).toEqual([`it has signed another tree of ${head?.size} leaves`]);
  });

  test("who have signed more than the database has are said to be away", async () => {
    const witnesses = asking(liar(() => new Response("1000000\n", { status: 409 })));
    await grow();
    await witnesses.ask();
    expect(reasons()).toEqual([expect.stringMatching(/^it has signed 1000000 segments, and the newest head has \d+$/)]);
  });

  test("are in proofs, which are checked by their keys", async () => {
    const { origin } = witness();
    await grow();
    await asking(origin).ask();
    const [proof] = await proveAudit(w.admin, "commands:1");
    expect(checkProof(proof, signers, [ours])).toMatchObject({ cosignedAt: [expect.any(Number)] });
    const stranger = witnessOf(ours.name, new Uint8Array(32).fill(9));
    expect(checkProof(proof, signers, [stranger])).toEqual({ wrong: expect.stringContaining("witness.example") });
  });

  test("are in proofs of what they have signed, also while they are away; what came later is proved without them", async () => {
    const { origin, stop } = witness();
    await grow();
    await asking(origin).ask();
    await stop();
    closing.pop();
    const before = await lastReceipt();
    await grow();
    const later = await lastReceipt();
    expect(later).not.toBe(before);
    const treeOf = async (receipt: string, ...by: (typeof ours)[]) =>
      checkProof((await proveAudit(w.admin, receipt))[0], signers, by);
    const [old, fresh] = [await treeOf(before, ours), await treeOf(later)];
    expect(old).toMatchObject({ receipt: before, cosignedAt: [expect.any(Number)] });
    expect(fresh).toMatchObject({ receipt: later });
    expect(await treeOf(later, ours)).toEqual({ wrong: expect.stringContaining("witness.example") });
    // A bundle has both.
    const sizes = new Set<number>();
    for await (const page of provenPages(
      w.admin,
      { actions: ["organization.create"] },
      () => {},
      () => {},
    )) {
      for (const proof of page) sizes.add((checkProof(proof, signers) as Proved).tree.size);
    }
    expect([...sizes]).toEqual([(old as Proved).tree.size, (fresh as Proved).tree.size]);
    await asking(witness().origin).ask();
    expect(await treeOf(later, ours)).toMatchObject({ receipt: later });
  });

  test("are on the page Audit: until when each has signed, and which are away", async () => {
    const page = async (...keys: string[]) => {
      const settings = keys.map((key) => ({ url: "http://127.0.0.1", key }));
      const options = { signers: async () => signers, file: undefined, witnesses: settings };
      const checkpoint = new NewestCheckpoint({ ...options, auditKey: w.admin.systemKeys.audit });
      const visitor = await visitorOf({ ...w, installation: { ...w.installation, checkpoint } });
      const { html } = await visitor.page("/audit");
      return html.replace(/<[^>]*>/g, "");
    };
    await grow();
    await asking(witness().origin).ask();
    // One that is set nowhere is known by what it signed.
    expect(await page()).toMatch(/Signed by the witness witness\.example until \w/);
    const other = encodeWitness(witnessOf("other.example", new Uint8Array(32).fill(9)));
    const both = await page(other, encodeWitness(ours));
    expect(both).toContain("Signed by the witness other.example: nothing yet");
    expect(both).not.toContain("The witness witness.example is away");
    await w.run("update audit_checkpoints_signed set at = at - 3600000");
    expect(await page(encodeWitness(ours))).not.toContain("is away");
    expect(await page(other)).toContain("The witness other.example is away");
    expect(await page(other)).not.toContain("witness.example until");
    await grow(true);
    await w.run("update audit_checkpoints_signed set at = at - 3600000");
    const afterLoss = await page(other, encodeWitness(ours));
    expect(afterLoss).toMatch(
      /The witness witness\.example has signed nothing since a loss was accepted .+ only for what/,
    );
    expect(afterLoss).toContain("The witness other.example is away");
    await w.run("update audit_checkpoints_signed set at = at - 2600000000");
    expect(await page()).not.toContain("Signed by the witness");
  });
});
