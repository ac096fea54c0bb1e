/** A PostgreSQL that is not ours: any host of several, or somebody on the way to one whose certificate is not verified. */
import { afterEach, describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import { sql } from "drizzle-orm";
import { parsePostgresUrl } from "../../src/core/settings/postgres-url.ts";
import { findPrimary } from "../../src/installation/find-primary.ts";
import { openPostgres, Servers } from "../../src/store/postgres.ts";
import { signInFailures } from "../../src/store/sign-in.ts";
import {
  authentication,
  type FalsePostgres,
  message,
  type Spoil,
  type Step,
  startFalsePostgres,
  steps,
} from "../support/false-postgres.ts";

const password = "of-the-database-5b1d";
const salt = Buffer.from("salt");
const started: FalsePostgres[] = [];
afterEach(async () => {
  for (const one of started.splice(0)) await one.stop();
});

async function start(spoil?: Spoil, rounds?: number): Promise<FalsePostgres> {
  const one = await startFalsePostgres(password, spoil, rounds);
  started.push(one);
  return one;
}

/** It listens on this machine, and this address is not known to be it. */
const beyond = ({ port }: FalsePostgres) => serversAt(`0.0.0.0:${port}`);
const here = ({ port }: FalsePostgres) => serversAt(`127.0.0.1:${port}`);
const serversAt = (where: string) =>
  new Servers(parsePostgresUrl(`postgres://keyhole:${password}@${where}/keyhole`, {}).servers);

/** What a command says that is given these servers. */
const sentenceOf = (servers: Servers) =>
  findPrimary(servers).then(
    () => "it opens",
    (error: Error) => error.message.replace(/^DATABASE_URL: [\d.:]+ /, ""),
  );

/** In place of the first message that asks for something. */
const asking =
  (asked: Buffer): Spoil =>
  (step, correct) =>
    step === "sasl" ? asked : correct;

describe("who may be anybody", () => {
  test.each([
    ["in the clear", authentication(3)],
    ["as md5", authentication(5, salt)],
  ])("does not get the password %s, and is asked once", async (_, asked) => {
    const server = await start(asking(asked));
    expect(await sentenceOf(beyond(server))).toBe(signInFailures.SIGN_IN_CLEAR);
    expect([server.knows("keyhole", salt), server.connections()]).toEqual([false, 1]);
  });

  test("must ask for it if there is one; on this machine it need not", async () => {
    const refuses = Buffer.concat([message("E", "SERROR\0C42P01\0Mno\0\0"), message("Z", "I")]);
    const letsIn: Spoil = (step) => (step === "sasl" ? Buffer.concat([authentication(0), message("Z", "I")]) : refuses);
    const [server, other] = [await start(letsIn), await start(letsIn)];
    expect(await sentenceOf(beyond(server))).toBe(signInFailures.SIGN_IN_UNASKED);
    const withoutPassword = new Servers(
      parsePostgresUrl(`postgres://keyhole@0.0.0.0:${other.port}/keyhole`, {}).servers,
    );
    for (const servers of [here(server), withoutPassword]) {
      expect(await sentenceOf(servers)).not.toStartWith("asks for");
      expect(servers.refusal).toBeUndefined();
    }
  });

  test.each([
    ["in the clear", authentication(3)],
    ["as md5", authentication(5, salt)],
  ])("gets it %s on this machine, and after a refusal no more for ten seconds", async (_, asked) => {
    const server = await start((step, correct, socket) => {
      if (step === "sasl") return asked;
      if (step === "continue") socket.end(); // the password came
      return step === "continue" ? undefined : correct;
    });
    const servers = here(server);
    expect(await sentenceOf(servers)).toBe(signInFailures.SIGN_IN_CLOSED);
    expect([server.knows("keyhole", salt), server.connections()]).toEqual([true, 1]);
    expect(servers.refusal).toEndWith(signInFailures.SIGN_IN_CLOSED);
    expect(await sentenceOf(servers)).not.toBe("it opens");
    expect(server.connections()).toBe(1);
  });

  test("does not get it in the middle of a session", async () => {
    const server = await start((step, correct) => (step === "answer" ? authentication(3) : correct));
    await sentenceOf(here(server));
    expect(server.knows("keyhole", salt)).toBe(false);
  });

  test("has every pool and every waiting query of a server sign in a few times, not hundreds a second", async () => {
    const server = await start((step, correct, socket) => {
      if (step === "continue") socket.end(); // the password came
      return step === "sasl" ? authentication(3) : correct;
    });
    const servers = here(server);
    const pools = (["look-up", "serve", "files", "journal"] as const).map((use) => openPostgres(servers, use));
    const asked = pools.flatMap((pool) => Array.from({ length: 25 }, () => pool.query(sql`select 1 as one`)({})));
    const outcomes = await Promise.allSettled(asked);
    for (const pool of pools) await pool.close();
    expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
    // Each pool may have all of its connections under way before the first is refused: 4, 6, 3 and 1.
    expect(server.connections()).toBeLessThanOrEqual(14);
  });

  test("of several hosts does not keep Keyhole from the next", async () => {
    const [bad, good] = [await start(asking(authentication(3))), await start()];
    const servers = serversAt(`0.0.0.0:${bad.port},0.0.0.0:${good.port}`);
    await sentenceOf(servers);
    expect(bad.knows("keyhole", salt)).toBe(false);
    expect(good.connections()).toBeGreaterThan(0);
  });
});

describe("SCRAM", () => {
  test("of more than 600,000 rounds is refused before any is done", async () => {
    for (const rounds of [600_001, 2 ** 31 - 1, 4_294_967_295]) {
      const server = await start(undefined, rounds);
      expect(await sentenceOf(beyond(server))).toBe(signInFailures.SIGN_IN_ROUNDS);
    }
  });

  test("of fewer than 4,096 rounds is refused from whoever may be anybody, and does on this machine", async () => {
    for (const [rounds, isRefused] of [
      [1, true],
      [4095, true],
      [4096, false],
    ] as const) {
      const sentence = await sentenceOf(beyond(await start(undefined, rounds)));
      expect([rounds, sentence === signInFailures.SIGN_IN_FEW_ROUNDS]).toEqual([rounds, isRefused]);
    }
    const local = here(await start(undefined, 1));
    await sentenceOf(local);
    expect(local.refusal).toBeUndefined();
  });

  test("of 600,000 rounds lets everything else go on", async () => {
    let turnsLeft = -1;
    let signedIn = false;
    const server = await start((step, correct) => {
      if (step === "continue") turnsLeft = 100;
      if (step === "final") signedIn = true;
      return correct;
    }, 600_000);
    const opened = sentenceOf(beyond(server));
    // A derivation that blocks would be over at the turn after it began.
    await new Promise<void>((resolve) => {
      const turn = () => {
        if (turnsLeft > 0) turnsLeft -= 1;
        if (turnsLeft === 0 || signedIn) resolve();
        else setImmediate(turn);
      };
      turn();
    });
    expect([turnsLeft, signedIn]).toEqual([0, false]);
    await opened;
    expect(signedIn).toBe(true);
  });

  const inReply = (change: (text: string) => string): Spoil => {
    return (step, correct) =>
      step === "continue" ? authentication(11, change(correct.toString("latin1", 9))) : correct;
  };
  const after = (step: Step, more: Buffer): Spoil => {
    return (at, correct) => (at === step ? Buffer.concat([correct, more]) : correct);
  };
  const instead =
    (step: Step, other: Buffer): Spoil =>
    (at, correct) =>
      at === step ? other : correct;
  const ready = Buffer.concat([authentication(0), message("Z", "I")]);
  test.each<[what: string, spoil: Spoil, code: keyof typeof signInFailures]>([
    ["a nonce that is not ours", inReply((text) => text.replace(/^r=./, "r=")), "SIGN_IN_PROTOCOL"],
    ["a nonce that is ours alone", inReply((text) => text.replace("theirs", "")), "SIGN_IN_PROTOCOL"],
    ["no salt", inReply((text) => text.replace(/s=[^,]*,/, "")), "SIGN_IN_PROTOCOL"],
    ["no rounds", inReply((text) => text.replace(/,i=.*/, "")), "SIGN_IN_PROTOCOL"],
    ["rounds that are no number", inReply((text) => text.replace(/i=.*/, "i=many")), "SIGN_IN_PROTOCOL"],
    ["rounds below one", inReply((text) => text.replace(/i=.*/, "i=-1")), "SIGN_IN_PROTOCOL"],
    ["an extension that must be known", inReply((text) => `m=x,${text}`), "SIGN_IN_PROTOCOL"],
    ["no mechanism that is known", instead("sasl", authentication(10, "OAUTHBEARER\0\0")), "SIGN_IN_METHOD"],
    ["a way to sign in that is not known", instead("sasl", authentication(7)), "SIGN_IN_METHOD"],
    ["a proof by another password", instead("final", authentication(12, `v=${"A".repeat(43)}=`)), "SIGN_IN_PROOF"],
    ["no proof", instead("final", authentication(12)), "SIGN_IN_PROOF"],
    ["the last step without a proof", instead("final", authentication(0)), "SIGN_IN_PROTOCOL"],
    ["an end after the first step", after("sasl", ready), "SIGN_IN_PROTOCOL"],
    ["an end after the second", after("continue", ready), "SIGN_IN_PROTOCOL"],
    ["the second step twice", after("continue", authentication(11, "r=a,s=YQ==,i=1")), "SIGN_IN_PROTOCOL"],
    ["the second step first", instead("sasl", authentication(11, "r=a,s=YQ==,i=1")), "SIGN_IN_PROTOCOL"],
    ["the password in the clear as the second step", instead("continue", authentication(3)), "SIGN_IN_PROTOCOL"],
    ["no type", instead("sasl", message("R", "")), "SIGN_IN_PROTOCOL"],
    ["half a type", instead("continue", message("R", "\0\0")), "SIGN_IN_PROTOCOL"],
    ["ready before the sign-in", instead("sasl", message("Z", "I")), "SIGN_IN_PROTOCOL"],
    ["rows before the sign-in", instead("sasl", message("D", "\0\x01\0\0\0\x01a")), "SIGN_IN_PROTOCOL"],
  ])("is refused with %s", async (_, spoil, code) => {
    const server = await start(spoil);
    expect(await sentenceOf(beyond(server))).toBe(signInFailures[code]);
    expect([server.knows("keyhole", salt), server.connections()]).toEqual([false, 1]);
  });
});

const endless = Buffer.alloc(1 << 20, 0x41);
const kinds: readonly [what: string, spoiled: (correct: Buffer, socket: Socket) => Buffer | undefined][] = [
  [
    "cut",
    (correct, socket) => {
      socket.end(correct.subarray(0, correct.length >> 1));
      return undefined;
    },
  ],
  [
    "huge",
    (correct, socket) => {
      const head = Buffer.concat([correct.subarray(0, 1), Buffer.from([0x7f, 0xff, 0xff, 0xff])]);
      socket.write(head);
      const more = () => {
        while (!socket.destroyed && socket.write(endless));
      };
      socket.on("drain", more);
      more();
      return undefined;
    },
  ],
  ["wrong in its type", (correct) => Buffer.concat([Buffer.from("?"), correct.subarray(1)])],
  ["wrong in its length", (correct) => Buffer.concat([correct.subarray(0, 1), Buffer.alloc(4), correct.subarray(5)])],
  [
    "wrong in its body",
    (correct) => Buffer.concat([correct.subarray(0, 5), Buffer.alloc(Math.max(0, correct.length - 5), 0xff)]),
  ],
  ["noise", () => Buffer.alloc(300, 0xff)],
  ["never sent", () => undefined],
];

test("any message that is cut, huge, wrong or never sent ends a command with a sentence, and gives nothing away", async () => {
  const outcomes = await Promise.all(
    kinds.flatMap(([what, spoiled]) =>
      steps.map(async (step) => {
        const server = await start((at, correct, socket) => (at === step ? spoiled(correct, socket) : correct));
        const sentence = await sentenceOf(beyond(server));
        const said = /^[A-Za-z][\x20-\x7e]*[.?]$/.test(sentence) && sentence !== "it opens";
        return [what, step, said ? "a sentence" : sentence, server.knows("keyhole", salt), server.connections()];
      }),
    ),
  );
  for (const [what, step, ...rest] of outcomes)
    expect([what, step, ...rest]).toEqual([what, step, "a sentence", false, 1]);
});

test("an error's code is a stranger's text, and is not shown unless it is a code", async () => {
  const server = await start(asking(message("E", `SERROR\0C\x1b]0;x\x07${"A".repeat(999)}\0Mno\0\0`)));
  expect(await sentenceOf(beyond(server))).toBe("cannot be used (no code): does PostgreSQL run there?");
});
