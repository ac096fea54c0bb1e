import { expect, test } from "bun:test";
import { Refused } from "../../src/core/refused.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { auditKeys, proveAudit, provenPages } from "../../src/people/audit/audit-proof.ts";
import { verifyPublic } from "../../src/people/audit/audit-public.ts";
import { cosign, encodeWitness, noteText, parseVerifier, type Verifier, witnessOf } from "../../src/record/note.ts";
import { canary, spellingsOf } from "../support/canary.ts";
import { checkProof } from "../support/check-proof.ts";
import { entry, writeLane } from "../support/journal.ts";
import { notarize } from "../support/notarize.ts";
import { pruneAudit } from "../support/prune.ts";
import { describeBoth } from "../support/world.ts";

const kindOf = (error: unknown) => (error instanceof Refused ? error.kind : error);

describeBoth("a receipt", (w) => {
  const proofs = async (name: string) => proveAudit(w.admin, name);
  const refusal = (name: string) => proofs(name).then(() => "proved", kindOf);
  const keys = async () => (await auditKeys(w.admin)).map((key) => parseVerifier(key) as Verifier);
  const place = () => w.place({ variables: { staging: { A: canary, B: `${canary}-2` } }, key: {} });
  const receiptOf = async (path: string, key: { readonly key: string }) => {
    const answer = await w.client().ask(path, { key });
    expect(answer.status).toBe(200);
    return answer.headers.get("keyhole-audit") ?? "";
  };
  const staging = "/projects/web/variables?environment=staging";

  test("has no proof before a notary has signed, and the key to check it with from the beginning", async () => {
    const before = await auditKeys(w.admin);
    expect(before).toHaveLength(1);
    const { key } = await place();
    const receipt = await receiptOf(staging, key);
    expect(await refusal(receipt)).toBe("unavailable");
    await notarize(w);
    expect(await auditKeys(w.admin)).toEqual(before);
    const later = await receiptOf(staging, key);
    expect([await refusal(receipt), await refusal(later)]).toEqual(["proved", "unavailable"]);
  });

  test("leads to a proof that the installation's public key alone checks", async () => {
    const { key } = await place();
    const receipt = await receiptOf(staging, key);
    expect(await notarize(w)).toBe(0);
    const [proof, ...more] = await proofs(receipt);
    expect(more).toEqual([]);
    const log = await keys();
    const found = checkProof(JSON.parse(JSON.stringify(proof)), log);
    expect(found).toMatchObject({
      receipt,
      origin: log[0]?.name,
      entry: { actor: { type: "key", id: key.id }, action: "variables.read", names: ["A", "B"], project: "web" },
    });
    const [read] = await w.audit(key);
    expect(found).toHaveProperty("at", read?.time);
    for (const [how, value] of spellingsOf(Buffer.from(canary))) {
      expect([how, JSON.stringify(proof).includes(value.toString())]).toEqual([how, false]);
    }
    // An installation with another key has not signed it.
    const stranger = parseVerifier("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW") as Verifier;
    expect(checkProof(proof, [stranger])).toHaveProperty("wrong");
  });

  test("of several files leads to a proof of each, over several segments too", async () => {
    const { key, project } = await w.place({ key: { resources: ["files"] } });
    for (const path of ["a", "b", "c"]) {
      await putFile(w.admin, project.where, { path, environments: ["staging"], content: Buffer.from(path) });
    }
    const receipt = await receiptOf("/files?project=web&environment=staging", key);
    const [lane = "", numbers = ""] = receipt.split(":");
    const [first, last] = numbers.split("-").map(Number) as [number, number];
    expect(last - first).toBe(2);
    await receiptOf("/files?project=web&environment=staging", key);
    await notarize(w);
    const log = await keys();
    const names = async (name: string) =>
      (await proofs(name)).map((proof) => (checkProof(proof, log) as { entry?: { names: string[] } }).entry?.names[0]);
    expect(await names(receipt)).toEqual(["a", "b", "c"]);
    expect(await names(`${lane}:${first + 1}`)).toEqual(["b"]);
    expect(await names(`${lane}:${first + 2}-${last + 2}`)).toEqual(["c", "a", "b"]);
    expect(await names(`${lane.slice(0, 30)}:${first}`)).toEqual(["a"]);
    expect(await refusal(`${lane}:${first}-${last + 9}`)).toBe("not_found");
  });

  test.each([
    ["of no entry", "commands:999999", "not_found"],
    ["of no lane", "none-like-it:1", "not_found"],
    ["that is misspelled", "commands", "invalid"],
    ["with a number of nothing", "commands:0", "invalid"],
    ["of too many entries", "commands:1-1001", "bound"],
  ])("%s is refused", async (_, name, kind) => expect(await refusal(name)).toBe(kind));

  test("is proved of what is in the tree, and of nothing that SQL changed since", async () => {
    const { key } = await place();
    const receipt = await receiptOf(staging, key);
    const [lane = "", seq] = receipt.split(":");
    await notarize(w);
    const [saved] =
      await w.sql`select at, texts, entries from audit_segments where lane = ${lane} and last_seq = ${seq}`;
    const change = async (column: string, value: unknown) => {
      await w.run(`update audit_segments set ${column} = ? where lane = ? and last_seq = ?`, [value, lane, seq]);
      return refusal(receipt);
    };
    const rows: [column: string, value: unknown, kind: string][] = [
      ["texts", String(saved?.["texts"]).replace("staging", "production"), "conflict"],
      ["at", Number(saved?.["at"]) + 1, "conflict"],
      ["entries", "{}", "not_found"],
    ];
    for (const [column, value, kind] of rows) {
      expect([column, await change(column, value)]).toEqual([column, kind] as unknown[]);
      expect(await change(column, saved?.[column])).toBe("proved");
    }
    const leaves = await w.run("select leaf, hashes from audit_leaves");
    const put = (hashesOf: (hashes: Buffer) => Buffer) =>
      Promise.all(
        leaves.map(
          ({ leaf, hashes }) =>
            w.sql`update audit_leaves set hashes = ${hashesOf(hashes as Buffer)} where leaf = ${leaf}`,
        ),
      );
    await put((hashes) => Buffer.alloc(hashes.length));
    expect(await refusal(receipt)).toBe("conflict");
    await put((hashes) => hashes);
    expect(await refusal(receipt)).toBe("proved");
  });

  test("is one of a bundle, in which all matching entries are proved against one head", async () => {
    const { key, organization } = await place();
    const receipts = [await receiptOf(staging, key), await receiptOf(staging, key)];
    await notarize(w);
    await receiptOf(staging, key);
    let left = 0;
    const found: unknown[] = [];
    const bundle = provenPages(
      w.admin,
      { keyId: key.id, actions: ["variables.read"] },
      (count) => {
        left += count;
      },
      () => {},
    );
    for await (const page of bundle) found.push(...page);
    const log = await keys();
    const proved = found.map((proof) => checkProof(proof, log) as { receipt?: string; tree?: unknown });
    expect(proved.map(({ receipt }) => receipt)).toEqual(receipts);
    expect(left).toBe(1);
    expect(new Set(proved.map(({ tree }) => JSON.stringify(tree))).size).toBe(1);
    const holding = { organizationId: organization.id, projectId: null, rights: ["see"], environments: 7 };
    const nobodys = { ...w.admin, rights: [holding] };
    expect(
      await provenPages(
        nobodys as never,
        {},
        () => {},
        () => {},
      )
        .next()
        .then(() => "", kindOf),
    ).toBe("forbidden");
  });

  test("is in a tree that is verified without a secret, and what SQL changed in it is named", async () => {
    await notarize(w);
    const log = await keys();
    const found = async () => {
      const database = w.installation.open("serve");
      return verifyPublic(database, log).finally(() => database.close());
    };
    const { leaves, heads, flaws } = await found();
    const [counts] = await w.run("select count(*) as leaves from audit_leaves");
    expect([leaves, flaws]).toEqual([Number(counts?.["leaves"]), []]);
    expect(heads).toBeGreaterThan(1);
    const changes = [
      [
        "update audit_leaves set leaf = leaf + 1 where leaf = ?",
        "update audit_leaves set leaf = leaf - 1 where leaf = ? + 1",
      ],
      ["update audit_leaves set lane = lane where leaf = ?", "", "nothing"],
      [
        "update audit_checkpoints_signed set size = size + 1 where size = ? + 1",
        "update audit_checkpoints_signed set size = size - 1 where size = ? + 2",
      ],
    ] as const;
    for (const [change, back, nothing] of changes) {
      await w.run(change, [leaves - 1]);
      expect([change, (await found()).flaws.length > 0]).toEqual([change, nothing === undefined]);
      if (back !== "") await w.run(back, [leaves - 1]);
      expect((await found()).flaws).toEqual([]);
    }
  });

  test("stays provable to who kept the proof when retention has dropped the entry", async () => {
    const month = 31 * 86_400_000;
    const { lane } = await writeLane(w, [[entry]], Date.now() - 4 * month);
    const receipt = `${lane}:1`;
    await notarize(w);
    const [proof] = await proofs(receipt);
    await pruneAudit(w.admin, month);
    await notarize(w);
    expect(await refusal(receipt)).toBe("not_found");
    expect(checkProof(proof, await keys())).toMatchObject({ receipt });
  });

  test("is proved to whoever may read the entry, and is not there for anybody else", async () => {
    const { key, organization, project } = await place();
    const receipt = await receiptOf(staging, key);
    await notarize(w);
    const holding = { organizationId: organization.id, rights: ["audit"] } as const;
    const as = (projectId: string | null, environments: number) => {
      return { ...w.admin, rights: [{ ...holding, projectId, environments }] as never };
    };
    const outcome = (who: ReturnType<typeof as>) => proveAudit(who, receipt).then((all) => all.length, kindOf);
    expect(await outcome(as(project.id, 7))).toBe(1);
    expect(await outcome(as(null, 7))).toBe(1);
    expect(await outcome(as(crypto.randomUUID(), 7))).toBe("not_found");
    expect(await outcome({ ...w.admin, rights: [] as never })).toBe("forbidden");
  });

  test("is proved under no head that the notary did not sign, and without what no witness signed", async () => {
    const { key } = await place();
    await receiptOf(staging, key);
    await notarize(w); // this head stays when the newest one is cut off
    const receipt = await receiptOf(staging, key);
    await notarize(w);
    const log = await keys();
    const [head] = await w.run("select size, note from audit_checkpoints_signed order by size desc limit 1");
    const [size, note] = [Number(head?.["size"]), String(head?.["note"])];
    const bundle = () =>
      provenPages(
        w.admin,
        { keyId: key.id },
        () => {},
        () => {},
      )
        .next()
        .then(() => "proved", kindOf);
    const put = (text: string) => w.run("update audit_checkpoints_signed set note = ? where size = ?", [text, size]);
    for (const wrong of [note.replace(/.{8}\n$/, "AAAAAAA=\n"), note.replace(/\n\n.*/s, "\n\n"), "x"]) {
      await put(wrong);
      expect([wrong, await refusal(receipt), await bundle()]).toEqual([wrong, "conflict", "conflict"]);
    }
    await put(note);
    const witness = witnessOf("witness.example", new Uint8Array(32).fill(8));
    const stranger = cosign(noteText(note) ?? "", witnessOf(witness.name, new Uint8Array(32).fill(9)), Date.now());
    const flaws = async () => {
      const database = w.installation.open("serve");
      return (await verifyPublic(database, log).finally(() => database.close())).flaws.map(({ sentence }) => sentence);
    };
    for (const line of ["garbage", "garbage\n", "\n", stranger, `${stranger}${stranger}`]) {
      const row = [size, encodeWitness(witness), 1, line];
      await w.run("insert into audit_cosignatures (size, witness, at, line) values (?, ?, ?, ?)", row);
      const [proof] = await proofs(receipt);
      expect([line, checkProof(proof, log)]).toMatchObject([line, { receipt }]);
      expect(await bundle()).toBe("proved");
      expect(await flaws()).toEqual([
        expect.stringMatching(/^\S.* has a wrong signature of the witness witness.example/),
      ]);
      await w.run("delete from audit_cosignatures");
    }
    expect(await flaws()).toEqual([]);
    // The end of the tree with its head is cut off, and the witness's signature of it is still there.
    await w.run("insert into audit_cosignatures (size, witness, at, line) values (?, ?, 1, ?)", [
      size,
      encodeWitness(witness),
      cosign(noteText(note) ?? "", witness, Date.now()),
    ]);
    await w.run("delete from audit_checkpoints_signed where size = ?", [size]);
    await w.run("delete from audit_leaves where leaf >= (select max(size) from audit_checkpoints_signed)");
    expect(await flaws()).toEqual([expect.stringMatching(/is missing, and the witness witness.example has signed it/)]);
  });
});
