import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { acceptRestore } from "../../src/people/audit/accept-restore.ts";
import { verifyAudit } from "../../src/people/audit/audit-chain.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";
import type { Plan } from "../../src/people/desk/plan.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { sealHead } from "../../src/record/head.ts";
import { NewestCheckpoint } from "../../src/record/notary/newest-checkpoint.ts";
import { findVerifiers, openSigners } from "../../src/record/notary/signers.ts";
import { startWitness } from "../../src/record/notary/witness-server.ts";
import { WitnessedHeads } from "../../src/record/notary/witnessed-heads.ts";
import { Witnesses } from "../../src/record/notary/witnesses.ts";
import { cosign, encodeWitness, openNote, signerOf, signNote, witnessOf } from "../../src/record/note.ts";
import { openTreeHead, signTreeHead } from "../../src/record/tree-note.ts";
import { type Database, databaseErrorCode } from "../../src/store/database.ts";
import { listAudit } from "../support/audit.ts";
import { newFolder } from "../support/folder.ts";
import { putHeadBack } from "../support/heads.ts";
import { notaryOf } from "../support/notarize.ts";
import { visitorOf } from "../support/pages.ts";
import { performed } from "../support/perform.ts";
import { savedTables } from "../support/saved.ts";
import { describeBoth, type LogEvent, type Row, type World } from "../support/world.ts";

/** What a database has of the audit: of all of it, or of its tree alone. */
const treeTables = ["audit_leaves", "audit_checkpoints_signed"] as const;
const auditTables = [...treeTables, "audit_segments", "audit_heads"] as const;

describeBoth("a database that was put back", (w) => {
  let folder: string;
  let file: string;
  let database: Database;

  const signersOf = async (of: Database) =>
    (await findVerifiers(of, w.installation.keyring, w.installation.systemKeys.audit)).signers;
  /** What a process on this host knows. @param path - of its file; none unless it is given */
  const knowing = (path?: string, ...witnesses: readonly { readonly url: string; readonly key: string }[]) =>
    new NewestCheckpoint({ auditKey: w.installation.systemKeys.audit, signers: signersOf, file: path, witnesses });
  const notary = async (checkpoint = knowing(), log: LogEvent[] = []) => {
    return notaryOf(w, { database, checkpoint, log: (event) => log.push(event) });
  };
  /** Adds entries of commands, and signs each. @returns how many leaves the tree has */
  const grow = async (count: number, checkpoint?: NewestCheckpoint) => {
    for (let done = 0; done < count; done++) {
      await w.organization();
      await (await notary(checkpoint)).round();
    }
    return size();
  };
  const size = async () =>
    Number((await w.run("select coalesce(max(size), 0) as size from audit_checkpoints_signed"))[0]?.["size"]);
  const compared = async (checkpoint: NewestCheckpoint) => {
    await checkpoint.compare(database);
    return checkpoint.refusal;
  };
  const accept = (checkpoint: NewestCheckpoint, agree = async (_: Plan) => {}, startedAt = Date.now()) => {
    const admin: AdminContext = { ...w.admin, checkpoint, startedAt };
    return performed(acceptRestore, admin, {}, agree);
  };
  const saved = (tables: readonly string[] = auditTables) => savedTables(w, tables);

  beforeEach(async () => {
    for (const table of [...auditTables, "audit_cosignatures", "audit_signers"]) await w.run(`delete from ${table}`);
    folder = newFolder();
    file = join(folder, "checkpoint");
    database = w.installation.open("notary");
  });
  afterEach(() => database.close());

  // First: the world's own servers remember what they see of the trees of other tests, every 10 s.
  test("is served by nobody: each request is 503 for one reason, and a page and a command say it", async () => {
    const { key, project } = await w.place({ variables: { staging: { TOKEN: "of-the-put-back" } }, key: {} });
    await grow(1);
    const back = await saved();
    await grow(2);
    const { checkpoint } = w.installation;
    await checkpoint.look(database);
    const visitor = await visitorOf(w);
    expect((await visitor.page("/")).status).toBe(200);
    await back();
    await checkpoint.look(database);
    const paths = ["/organization", "/projects", `/projects/${project.slug}/variables?environment=staging`];
    const answers = await Promise.all(
      paths.flatMap((path) => [w.ask(path, { key }), w.ask(path), w.ask(path, { key: `kh_${"x".repeat(49)}` })]),
    );
    const unavailable = { error: "The service cannot answer now; nothing is returned.", code: "unavailable" };
    for (const { status, json } of answers) expect({ status, json }).toEqual({ status: 503, json: unavailable });
    expect(w.log.at(-1)).toMatchObject({ status: 503, reason: expect.stringContaining("was put back") });
    expect((await w.keyhole.readiness()).checks).toMatchObject({ database: true, audit: true, history: false });
    const page = await visitor.page("/");
    expect(page.status).toBe(503);
    expect(page.html).toContain("was put back to an earlier state");
    await expect(checkpoint.requireServed(database)).rejects.toMatchObject({ kind: "unavailable" });
    await accept(checkpoint);
    expect((await w.ask("/organization", { key })).status).toBe(200);
    expect((await visitor.page("/")).status).toBe(200);
    expect((await w.keyhole.readiness()).ready).toBe(true);
  });

  test("is noticed by the next lookup if what people did ends earlier, although no head was signed since", async () => {
    const { key } = await w.place({ key: {} });
    const organization = async () => (await w.ask("/organization", { key })).status;
    await accept(w.installation.checkpoint); // what the test before has left
    expect(await organization()).toBe(200);
    const back = await savedTables(w, [...auditTables, "api_keys"]);
    await revokeKey(w.admin, key.id);
    expect(await organization()).toBe(401);
    await back();
    expect(await organization()).toBe(503);
    expect(w.log.at(-1)).toMatchObject({
      status: 503,
      reason: expect.stringContaining("what people did ends with entry"),
    });
    // What people do next takes the number that was lost. That does not end it.
    for (let count = 0; count < 3; count++) await w.organization();
    expect(await organization()).toBe(503);
    await accept(w.installation.checkpoint);
    expect(await organization()).toBe(200);
  });

  test("is no number that SQL wrote into the row for a moment, a larger or a smaller one", async () => {
    const { key } = await w.place({ key: {} });
    await accept(w.installation.checkpoint);
    const organization = async () => (await w.ask("/organization", { key })).status;
    const answers = [await organization()];
    for (const change of [5, -5, -1, 1]) {
      await w.run(`update audit_heads set seq = seq + ${change}`);
      answers.push(await organization(), await organization());
    }
    expect(answers).toEqual(new Array(9).fill(200));
    // What is sealed is believed again, and its loss is noticed.
    const back = await savedTables(w, [...auditTables, "api_keys"]);
    await revokeKey(w.admin, key.id);
    expect(await organization()).toBe(401);
    await back();
    expect(await organization()).toBe(503);
    await accept(w.installation.checkpoint);
  });

  test("is not told by a lookup that was sent before an operator accepted it: no entry of people is known since", async () => {
    const [running, accepted] = [knowing(), knowing()];
    const note = (checkpoint: NewestCheckpoint, seq: number, before: number) => {
      const head = { lane: "commands", seq, at: 0, mac: Buffer.alloc(32), roster: null };
      return checkpoint.notePeople(seq, before, async () => ({
        ...head,
        seal: sealHead(w.admin.systemKeys.audit, head),
      }));
    };
    await note(running, 7, 0);
    for (const checkpoint of [running, accepted]) await note(checkpoint, 6, 7);
    expect(running.refusal).toContain("what people did ends with entry 6");
    expect(accepted.refusal).toBeUndefined();
  });

  test("is noticed by a process that has seen more, and by one that finds the file of this host", async () => {
    const running = knowing(file);
    expect(await compared(running)).toBeUndefined();
    expect(existsSync(file)).toBe(false);
    await grow(2, running);
    const back = await saved();
    await grow(3);
    expect(await compared(running)).toBeUndefined();
    const [newest] = await w.run("select note from audit_checkpoints_signed order by size desc limit 1");
    expect(readFileSync(file, "utf8")).toBe(newest?.["note"] as string);
    await back();
    expect(await compared(running)).toContain("its tree has 2 leaves, and this process has seen 5 leaves.");
    expect(await compared(knowing(file))).toContain(`and the file ${file} has seen 5 leaves.`);
    expect(readFileSync(file, "utf8")).toBe(newest?.["note"] as string);
    // Without either, nothing on this host knows better.
    expect(await compared(knowing())).toBeUndefined();
    // Until it has what was seen again, a larger tree is another one.
    await grow(9);
    expect(await size()).toBe(11);
    expect(await compared(running)).toContain("its tree is another one than this process has seen.");
    expect(await compared(knowing(file))).toContain("its tree is another one");
  });

  test("is noticed if its tree is as large, with another root", async () => {
    const running = knowing(file);
    await grow(2);
    const back = await saved();
    await grow(2, running);
    await back();
    expect(await grow(2)).toBe(4);
    expect(await compared(running)).toContain("another one");
    expect(await compared(knowing(file))).toContain("another one");
  });

  test("is noticed if it has no tree any more, or if its tree has holes", async () => {
    await grow(5, knowing(file));
    const back = await saved();
    await w.run("delete from audit_leaves where leaf = 3");
    await w.run("delete from audit_leaves where leaf = 4");
    await w.run("delete from audit_checkpoints_signed");
    expect(await compared(knowing(file))).toContain("it has no signed checkpoint");
    await back();
    expect(await compared(knowing(file))).toBeUndefined();
    await grow(1);
    await w.run("delete from audit_leaves where leaf = 3");
    expect(await compared(knowing(file))).toContain("Leaf 3 of the audit's tree is missing or was cut.");
  });

  test("is noticed if all of it was put back but the tree, whatever the leaves' columns say", async () => {
    await grow(1);
    const back = await saved(["audit_segments", "audit_heads"]);
    await grow(2, knowing(file));
    const [head] = await w.run("select * from audit_heads");
    await back();
    const part = "the tree has entry 3 of commands, and the newest one is 1.";
    const refusal = await compared(knowing());
    expect(refusal).toContain(part);
    await expect(accept(knowing())).rejects.toThrow(refusal as string);
    expect(await w.run("select 1 from audit_segments")).toHaveLength(1);
    await w.run("update audit_leaves set last_seq = -1 - leaf where leaf > 0");
    const witness = await witnessing();
    for (const one of [knowing(), knowing(file), knowing(undefined, witness)])
      expect(await compared(one)).toContain(part);
    // Nothing is signed over it, and the witness gets no newer head.
    await w.organization();
    const log: LogEvent[] = [];
    await (await notary(knowing(file), log)).round();
    expect(log).toEqual([{ event: "audit_flaw", flaw: expect.stringContaining("A part of the database") }]);
    expect(await size()).toBe(3);
    // A number in the lane's head is not believed without its seal, where this host or a witness knows better.
    await w.run("update audit_heads set seq = 9");
    for (const one of [knowing(file), knowing(undefined, witness)])
      expect(await compared(one)).toContain("the row of audit_heads");
    await putHeadBack(w, head as Row);
    if (w.dialect === "sqlite") expect(await compared(knowing(file))).toContain("the row of audit_heads");
  });

  test("is not what a tree is that goes on, whoever signed it, and however often it is compared", async () => {
    const hosts = [knowing(file), knowing(), knowing(join(folder, "other"))];
    for (let at = 0; at < 9; at++) {
      await grow(at % 3, hosts[at % 3]);
      for (const host of hosts) expect(await compared(host)).toBeUndefined();
    }
    expect(await size()).toBe(9);
    // A process that has just started knows the file, and no more is asked of a database that has all of it.
    expect(await compared(knowing(file))).toBeUndefined();
  });

  test("gets nothing signed, until an operator accepts it: that is on record, in the tree and in the file", async () => {
    const running = knowing(file);
    const other = knowing(join(folder, "other"));
    await grow(2);
    const back = await saved();
    await grow(4, running);
    await compared(other);
    await back();
    const log: LogEvent[] = [];
    const late = await notary(running, log);
    await w.organization();
    await late.round();
    await late.round();
    expect(log).toEqual([{ event: "audit_flaw", flaw: expect.stringContaining("was put back to an earlier state") }]);
    expect([late.flaws, await size()]).toEqual([1, 2]);

    const deeds: string[] = [];
    const refused = async ({ deed = "" }: Plan) => {
      deeds.push(deed);
      throw new Error("no");
    };
    await expect(accept(running, refused)).rejects.toThrow("no");
    expect(deeds).toEqual([expect.stringContaining("with 2 leaves in its tree")]);
    expect(await listAudit(w.admin, { actions: ["audit.accept-restore"] })).toEqual([]);

    // What was shown is no more: neither is anything done.
    const changed = accept(running, async () => void (await w.organization()));
    await expect(changed).rejects.toMatchObject({ kind: "conflict", message: expect.stringContaining("has changed") });
    // Of six who were shown the same, one is on record. So it is if that one ended before the head was signed.
    const unsigned = await saved(treeTables);
    const all = Promise.withResolvers<void>();
    let shown = 0;
    const together = async () => {
      shown += 1;
      if (shown === 6) all.resolve();
      await all.promise;
    };
    const six = await Promise.all(Array.from({ length: 6 }, () => accept(knowing(file), together)));
    for (const { document } of six) expect(document).toMatchObject({ size: 3 });
    await unsigned();
    const startedAt = Date.now() - 1;
    const slower = accept(knowing(file), async () => void (await accept(knowing(file))));
    expect((await slower).document).toMatchObject({ size: 3 });
    // One that was started at once, and is slower, is shown nothing.
    const seventh = await accept(knowing(), refused, startedAt);
    expect(seventh.sentence).toContain("accepted already");
    expect(await listAudit(w.admin, { actions: ["audit.accept-restore"] })).toMatchObject([
      { actor: { name: "ann@host" }, names: ["2"] },
    ]);
    const signers = await signersOf(database);
    const head = openTreeHead(readFileSync(file, "utf8"), signers);
    expect(head?.size).toBe(3);
    expect(head?.acceptedAt).toBeGreaterThan(Date.now() - 60_000);
    // Hosts that knew more learn of it from the database, and so does the next notary.
    for (const one of [running, other, knowing(join(folder, "other"))]) expect(await compared(one)).toBeUndefined();
    const accepted = await saved();
    await grow(3);
    expect(await compared(other)).toBeUndefined();
    const later = openTreeHead(readFileSync(join(folder, "other"), "utf8"), signers);
    expect(later).toMatchObject({ size: 6, acceptedAt: head?.acceptedAt as number });
    expect((await verifyAudit(w.admin)).flaws).toEqual([]);
    // What was accepted is this loss: this history put back, and the old one, are refused.
    await accepted();
    expect(await compared(other)).toContain("its tree has 3 leaves");
    await back();
    expect(await compared(other)).toContain("its tree has 2 leaves");
    expect(await compared(knowing(file))).toContain("its tree has 2 leaves");
    // Nor is it accepted by one that was started a moment after, on a host that knows no better.
    await accepted();
    await accept(knowing());
    for (const one of [other, knowing(file)]) expect(await compared(one)).toBeUndefined();
    expect(await listAudit(w.admin, { actions: ["audit.accept-restore"] })).toHaveLength(2);
  });

  const ours = witnessOf("witness.example", new Uint8Array(32).fill(8));
  const key = encodeWitness(ours);
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  /** A witness that has signed the newest head. */
  const witnessing = async () => {
    const options = { folder, signer: ours, logs: await signersOf(database), host: "127.0.0.1", port: 0 };
    const { origin, stop } = startWitness({ ...options, log: () => {}, now: Date.now });
    closing.push(stop);
    const witnesses = new Witnesses(database, [{ url: origin, key }], () => {});
    await witnesses.ask();
    expect(witnesses.away).toEqual({});
    return { url: origin, key };
  };
  /** Something that answers in place of a witness. */
  const answering = (answer: () => Response | Promise<Response>) => {
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
    closing.push(() => server.stop(true));
    return { url: `http://127.0.0.1:${server.port}`, key };
  };

  test("is noticed by what a witness remembers, with or without memory and a file, until it is accepted", async () => {
    await grow(2);
    const back = await saved();
    await grow(3);
    const witness = await witnessing();
    const running = knowing(undefined, witness);
    expect(await compared(running)).toBeUndefined();
    expect(await compared(knowing(file, witness))).toBeUndefined();
    await back();
    const known = "its tree has 2 leaves, and the witness witness.example has seen 5 leaves.";
    const copy = "Or a copy of it was started with the same KEYHOLE_WITNESS, and had more signed.";
    expect(await compared(knowing(undefined, witness))).toContain(`${known} ${copy} If that was meant`);
    expect(await compared(running)).not.toContain("a copy of it");
    expect(await compared(knowing(join(folder, "of-nothing"), witness))).toContain(known);
    expect(await compared(running)).toContain("and this process has seen 5 leaves.");
    expect(await compared(knowing())).toBeUndefined();
    const log: LogEvent[] = [];
    const late = await notary(knowing(undefined, witness), log);
    await late.round();
    expect(log).toEqual([{ event: "audit_flaw", flaw: expect.stringContaining(known) }]);
    expect(await size()).toBe(2);
    // The witness remembers 5 leaves for ever, and signs no other tree.
    await accept(knowing(undefined, witness));
    for (const one of [knowing(undefined, witness), knowing(file, witness), running]) {
      expect(await compared(one)).toBeUndefined();
    }
    await grow(9, knowing(undefined, witness));
    expect(await compared(knowing(undefined, witness))).toBeUndefined();
    const refused = new Witnesses(database, [witness], () => {});
    await refused.ask();
    expect(refused.away).toEqual({ "witness.example": "it answered 422" });
  });

  test("is noticed by a witness alone if the notary's key and the tree were taken out of it, too", async () => {
    const before = await saved();
    await grow(3);
    const witness = await witnessing();
    const key = (await signersOf(database))[0]?.publicKey;
    await before();
    for (const table of [...treeTables, "audit_signers"]) await w.run(`delete from ${table}`);
    const known = "it has no signed checkpoint, and the witness witness.example has seen one of 3 leaves.";
    expect(await compared(knowing(undefined, witness))).toContain(known);
    // A notary makes the same key again, and signs nothing with it.
    const late = await notary(knowing(undefined, witness));
    await late.round();
    expect([await size(), (await signersOf(database))[0]?.publicKey]).toEqual([0, key]);
    expect(await compared(knowing(undefined, witness))).toContain(known);
    await accept(knowing(undefined, witness));
    await grow(5);
    expect(await compared(knowing(undefined, witness))).toBeUndefined();
  });

  test("is accepted later than all that a witness has seen, whatever the clock says", async () => {
    await grow(1);
    const back = await saved();
    await grow(2);
    const witness = await witnessing();
    const [newest] = await signersOf(database);
    const ahead = Date.now() + 86_400_000;
    const signer = (await openSigners(database, w.installation.keyring, w.installation.systemKeys.audit)).signers[0];
    expect(signer.id).toEqual(newest?.id as Buffer);
    const head = { size: 9, root: Buffer.alloc(32), acceptedAt: ahead };
    const note = signTreeHead(head, signer);
    const text = openNote(note, [signer]) ?? "";
    const wrongClock = answering(() => new Response(note + cosign(text, ours, Date.now())));
    await back();
    expect(await compared(knowing(undefined, witness, wrongClock))).toContain("has seen 3 leaves");
    await accept(knowing(undefined, wrongClock));
    expect(await compared(knowing(undefined, witness, wrongClock))).toBeUndefined();
    const signed = await knowing().compare(database);
    expect(signed.acceptedAt).toBe(ahead + 1);
  });

  test("is nothing that a witness can make up: one that lies, or is away, refuses nothing", async () => {
    await grow(3);
    const {
      signers: [signer],
    } = await openSigners(database, w.installation.keyring, w.installation.systemKeys.audit);
    const later = { size: 9, root: Buffer.alloc(32, 1), acceptedAt: 0 };
    const text = (note: string) => note.slice(0, note.indexOf("\n\n") + 1);
    const cosigned = (note: string, by = ours) => note + cosign(text(note), by, Date.now());
    const stranger = signerOf(signer.name, new Uint8Array(32).fill(9));
    const of = (note: string) => () => new Response(note);
    const real = signTreeHead(later, signer);
    const unsigned = "it shows a head that it and this log have not both signed";
    const lies: readonly (readonly [() => Response | Promise<Response>, string | undefined])[] = [
      [of(cosigned(signTreeHead(later, stranger))), unsigned], // by a key that is not this log's
      [of(real), unsigned], // not by the witness
      [of(cosigned(real, witnessOf(ours.name, new Uint8Array(32).fill(9)))), unsigned],
      [of(cosigned(signTreeHead(later, signerOf("keyhole/other", new Uint8Array(32).fill(9))))), unsigned],
      [of(cosigned(signNote(`keyhole/other\n9\n${later.root.toString("base64")}\n`, signer))), unsigned],
      [of(cosigned(real).replace("\n9\n", "\n10\n")), unsigned],
      [() => new Response("9\n", { status: 409 }), "it answered 409"],
      [() => new Response("", { status: 302, headers: { Location: "/" } }), "it answered 302"],
      [of("x".repeat(10 * 1024 * 1024)), unsigned],
      [() => new Response("", { status: 500 }), "it answered 500"],
      [() => new Response("", { status: 404 }), undefined],
    ];
    for (const [answer, why] of lies) {
      const checkpoint = knowing(undefined, answering(answer));
      expect(await compared(checkpoint)).toBeUndefined();
      expect(checkpoint.away).toEqual(why === undefined ? {} : { "witness.example": why });
    }
    // What is really signed by both refuses, so these lies were judged.
    const honest = answering(of(cosigned(real)));
    expect(await compared(knowing(undefined, honest))).toContain("the witness witness.example has seen 9 leaves");
    // Nobody waits for one that never answers, and an old head takes nothing back.
    const silent = answering(() => new Promise(() => {}));
    expect(await compared(knowing(undefined, silent))).toBeUndefined();
    let shown = "";
    const changing = answering(() => new Response(shown));
    const heads = new WitnessedHeads([changing], -1);
    await heads.refresh([signer]);
    expect([heads.heads, Object.keys(heads.away)]).toEqual([[], [ours.name]]);
    // It is asked again, and what it shows then counts.
    shown = cosigned(real);
    await heads.refresh([signer]);
    while (heads.heads.length === 0) await fetch(changing.url);
    expect(heads.away).toEqual({});
    shown = cosigned(signTreeHead({ ...later, size: 1 }, signer));
    await heads.refresh([signer]);
    expect(heads.heads.map(({ head }) => head.size)).toEqual([9]);
  });

  test("is not what another process wrote into the file while the database was read", async () => {
    await grow(1, knowing(file));
    const checkpoint = knowing(file);
    let isLate = true;
    const late = () => (isLate ? grow(1, knowing(file)) : 0);
    const racing: Database = { ...database, db: afterReading(database.db, late) };
    await checkpoint.compare(racing);
    expect(checkpoint.refusal).toBeUndefined();
    isLate = false;
    const [newest] = await w.run("select note from audit_checkpoints_signed order by size desc limit 1");
    expect(readFileSync(file, "utf8")).toBe(newest?.["note"] as string);
  });

  test("gets no leaf of the tree that was there when a notary began its round", async () => {
    await grow(2);
    const back = await saved();
    await grow(3);
    const later = await saved();
    await w.organization();
    const racing: Database = {
      ...database,
      transaction: async (work) => {
        await back();
        return database.transaction(work);
      },
    };
    await (await notaryOf(w, { database: racing, checkpoint: knowing() })).round();
    expect(await w.run("select leaf from audit_leaves order by leaf")).toEqual([{ leaf: 0 }, { leaf: 1 }]);
    expect(await size()).toBe(2);
    await later();
  });

  test("is not accepted by a line that nobody signed, nor by keys that somebody put into the database", async () => {
    const running = knowing(file);
    await grow(1);
    const back = await saved();
    await grow(3, running);
    await back();
    await w.sql`update audit_checkpoints_signed set note = replace(note, ${"\n\n"}, ${"\naudit.accept-restore 99\n\n"})`;
    const refusal = "it has no signed checkpoint";
    expect(await compared(running)).toContain(refusal);
    const strange = await openSignersOfAnother(w);
    await w.sql`update audit_signers set public_key = ${strange}`;
    for (const one of [running, knowing(file)]) expect(await compared(one)).toContain(refusal);
  });

  test("is refused at once if what it should be compared by cannot be read, where a file or a witness is set", async () => {
    await grow(2, knowing(file));
    const witness = await witnessing();
    const renamed = (table: string, to: string) => w.run(`alter table ${table} rename to ${to}`);
    const breaks: Readonly<Record<string, readonly [harm: () => Promise<unknown>, mend: () => Promise<unknown>]>> = {
      "no leaves": [() => renamed("audit_leaves", "gone"), () => renamed("gone", "audit_leaves")],
      "no keys": [() => renamed("audit_signers", "gone"), () => renamed("gone", "audit_signers")],
    };
    for (const [what, [harm, mend]] of Object.entries(breaks)) {
      await harm();
      const [blind, host, witnessed] = [knowing(), knowing(file), knowing(undefined, witness)];
      for (const one of [blind, host, witnessed])
        expect({ what, answered: await one.look(database) }).toEqual({ what, answered: false });
      expect([blind.refusal, blind.failure === undefined]).toEqual([undefined, false]);
      for (const one of [host, witnessed]) {
        const refusal = expect.stringContaining("cannot be compared");
        expect({ what, refusal: one.refusal }).toEqual({ what, refusal });
        expect(one.comparisons).toEqual([{ with: expect.any(String), reason: one.failure as string }]);
      }
      expect(witnessed.away).toEqual({});
      await mend();
      for (const one of [host, witnessed]) {
        expect([await one.look(database), one.refusal]).toEqual([true, undefined]);
        expect(one.comparisons).toEqual([{ with: expect.any(String), size: 2 }]);
      }
    }
    // What does not answer is said, and a host that has seen nothing yet has nothing to compare with.
    const silent = knowing(join(folder, "new"), { url: "http://127.0.0.1:1", key });
    await silent.look(database);
    const reasons = silent.comparisons.map(({ reason }) => reason);
    expect(reasons).toEqual(["it has no checkpoint of this audit yet", expect.stringContaining("it cannot be asked")]);
  });

  test("is compared with what was seen, whatever was done to the rows of the keys that signed", async () => {
    await grow(2, knowing(file));
    const early = await saved();
    await grow(3, knowing(file));
    const witness = await witnessing();
    const back = await savedTables(w, ["audit_signers"]);
    const harms: Readonly<Record<string, () => Promise<unknown>>> = {
      "no key": () => w.run("delete from audit_signers"),
      "another key": () => w.sql`update audit_signers set public_key = ${Buffer.alloc(32)}`,
      "a key more": () =>
        w.run(`insert into audit_signers (generation, public_key, root_id, wrapped, created_at)
          select 2, public_key, root_id, wrapped, created_at from audit_signers`),
      "another root": () => w.run("update audit_signers set root_id = 'other'"),
    };
    const looks = async (what: string, refusal: unknown) => {
      for (const one of [knowing(file), knowing(undefined, witness)]) {
        const answered = await one.look(database);
        expect([what, answered, one.refusal]).toEqual([what, true, refusal as string]);
      }
    };
    for (const [what, harm] of Object.entries(harms)) {
      await harm();
      await looks(what, undefined);
      await back();
    }
    await early();
    for (const [what, harm] of Object.entries(harms)) {
      await harm();
      await looks(what, expect.stringContaining("The database was put back to an earlier state"));
      await back();
    }
  });

  test("a database that is away says nothing: what was known stays", async () => {
    const running = knowing(file);
    await grow(2, running);
    await compared(running);
    const away: Database = { ...database, query: () => () => Promise.reject(new Error("away")) };
    expect(await running.look(away)).toBe(false);
    expect(running.refusal).toBeUndefined();
    expect(databaseErrorCode(new Error("away"))).toBe("no code");
  });

  test("a file of another installation, or of nobody, is refused, and an accept replaces it", async () => {
    await grow(2);
    writeFileSync(file, "keyhole/0123456789abcdef\n9\nAAAA\n\n— x y\n");
    const refusal = await compared(knowing(file));
    expect(refusal).toContain(`The file ${file} has a checkpoint that no notary of this database signed.`);
    expect(readFileSync(file, "utf8")).toContain("0123456789abcdef");
    const checkpoint = knowing(file);
    await accept(checkpoint);
    expect(checkpoint.refusal).toBeUndefined();
    expect(await compared(knowing(file))).toBeUndefined();
  });

  test("a file that cannot be written is said, and does not keep anything from being served", async () => {
    writeFileSync(join(folder, "real"), "");
    await grow(1);
    symlinkSync("nowhere", file);
    const checkpoint = knowing(file);
    expect(await compared(checkpoint)).toBeUndefined();
    expect(checkpoint.unwritten).toContain("symbolic link");
    const log: LogEvent[] = [];
    await (await notary(checkpoint, log)).round();
    expect(log).toEqual([{ event: "checkpoint_unwritten", reason: expect.stringContaining("symbolic link") }]);
    rmSync(file);
    await compared(checkpoint);
    expect([checkpoint.unwritten, existsSync(file)]).toEqual([undefined, true]);
    for (const wrong of [folder, join(folder, "no/checkpoint")])
      expect(() => knowing(wrong)).toThrow("KEYHOLE_CHECKPOINT_FILE");
  });
});

/** A public key of nobody here. */
async function openSignersOfAnother(w: World): Promise<Buffer> {
  const [row] = await w.run("select public_key from audit_signers");
  const other = Buffer.from(row?.["public_key"] as Buffer);
  other[0] = (other[0] ?? 0) ^ 1;
  return other;
}

/** The same queries; `work` is done when one without named columns was answered, before its answer is given. */
function afterReading(db: Database["db"], work: () => unknown): Database["db"] {
  const chain = (builder: object): object =>
    new Proxy(builder, {
      get: (target, name) => {
        const value = Reflect.get(target, name);
        if (name === "then") {
          const rows = (target as PromiseLike<unknown>).then(async (found) => {
            await work();
            return found;
          });
          return rows.then.bind(rows);
        }
        if (typeof value !== "function") return value;
        const call = value.bind(target);
        return ["from", "leftJoin"].includes(String(name)) ? (...args: unknown[]) => chain(call(...args)) : call;
      },
    });
  return new Proxy(db, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      const call = value.bind(target);
      return name === "select" ? (...args: unknown[]) => (args.length > 0 ? call(...args) : chain(call())) : call;
    },
  });
}
