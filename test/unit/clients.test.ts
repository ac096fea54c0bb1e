import { afterEach, expect, jest, spyOn, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Refused } from "../../src/core/refused.ts";
import { parsePostgresUrl } from "../../src/core/settings/postgres-url.ts";
import { Servers } from "../../src/store/postgres.ts";
import { Clients } from "../../src/store/postgres-clients.ts";
import { newFolder } from "../support/folder.ts";

afterEach(() => jest.restoreAllMocks());

/** Clients that are numbered as they are made. */
function numbered() {
  let made = 0;
  return new Clients(() => ({ number: made++, end: async () => {} }));
}

const serversOf = (hosts: string) => new Servers(parsePostgresUrl(`postgres://u:p@${hosts}/db`, {}).servers);
const failure = Object.assign(new Error("statement"), { code: "42P01" });
const fails = () => Promise.reject(failure);

test("a failure reaches its caller, and the next statement uses a new client", async () => {
  const clients = numbered();
  expect(await clients.ask(3, fails).answer.catch((error: unknown) => error)).toBe(failure);
  expect(await clients.ask(3, async ({ number }) => number).answer).toBe(1);
});

test("a timer that wakes too early uses up no attempt", async () => {
  const sleep = Bun.sleep;
  spyOn(Bun, "sleep").mockImplementation((ms) => sleep(Math.max(0, Number(ms) - 3)));
  const clients = numbered();
  for (let renewals = 0; renewals < 3; renewals++) {
    expect(await clients.ask(1, fails).answer.catch((error: unknown) => error)).toBe(failure);
  }
  expect(await clients.ask(1, async ({ number }) => number).answer).toBe(3);
});

test("a statement that is given up is not repeated, and its client is not used again", async () => {
  const clients = numbered();
  const asked: number[] = [];
  const { promise: never, reject: fail } = Promise.withResolvers<never>();
  const { answer, giveUp } = clients.ask(3, ({ number }) => {
    asked.push(number);
    return never;
  });
  giveUp();
  expect(await clients.ask(3, async ({ number }) => number).answer).toBe(1);
  fail(Object.assign(new Error("canceling statement due to statement timeout"), { code: "57014" }));
  await expect(answer).rejects.toThrow();
  expect(asked).toEqual([0]);
});

test("a statement that is given up does not discredit the client that replaced its own", async () => {
  const clients = numbered();
  const never = new Promise<never>(() => {});
  const given = [clients.ask(3, () => never), clients.ask(3, () => never)];
  given[0]?.giveUp();
  expect(await clients.ask(3, async ({ number }) => number).answer).toBe(1);
  given[1]?.giveUp();
  expect(await clients.ask(3, async ({ number }) => number).answer).toBe(1);
});

test("a transaction never gets a client of which a connection broke, and stays on its host", () => {
  const breaks: (() => void)[] = [];
  const clients = new Clients((closed, elsewhere) => {
    breaks.push(closed);
    return { number: breaks.length, elsewhere, end: async () => {} };
  });
  expect(clients.client).toMatchObject({ number: 1, elsewhere: false });
  breaks[0]?.();
  expect(clients.client).toMatchObject({ number: 2, elsewhere: false });
  breaks[0]?.(); // of the client before
  expect(clients.client).toMatchObject({ number: 2 });
});

test("of a client that answered, the first broken connection is told, by its query or as it closes", async () => {
  let lost = 0;
  let close = () => {};
  const clients = new Clients(
    (closed) => {
      close = closed;
      return { end: async () => {} };
    },
    undefined,
    undefined,
    { refused: () => {}, lost: () => void lost++ },
  );
  const ends = Object.assign(new Error("terminating connection due to administrator command"), { code: "57P01" });
  const breaks = () => clients.ask(1, () => Promise.reject(ends)).answer.catch(() => {});
  await clients.ask(1, fails).answer.catch(() => {});
  await breaks();
  expect(lost).toBe(0); // neither client answered
  for (const steps of [[breaks, () => close()], [() => close()]]) {
    await clients.ask(1, async () => 1).answer;
    for (const step of steps) await step();
  }
  expect(lost).toBe(2);
});

test("a client that never answered, or no longer does, makes the next one try another host", async () => {
  const hosts: string[] = [];
  const clients = new Clients((_, elsewhere) => {
    hosts.push(elsewhere ? "another" : "the same");
    return { end: async () => {} };
  });
  const standby = Object.assign(new Error("read on a standby"), { code: "2201X" });
  const fail = () => clients.ask(1, () => Promise.reject(standby)).answer;
  await expect(fail()).rejects.toThrow(); // the first host never answered
  await clients.ask(1, async () => 1).answer; // the second did
  await expect(fail()).rejects.toThrow();
  await clients.ask(1, async () => 1).answer;
  const { answer, giveUp } = clients.ask(1, () => Promise.race([new Promise<never>(() => {}), nextTurn()]));
  giveUp();
  await expect(answer).rejects.toThrow();
  await clients.ask(1, async () => 1).answer;
  expect(hosts).toEqual(["the same", "another", "the same", "another"]);
});

test("pools share the server to ask, and the first that leaves one moves on for all", () => {
  const servers = serversOf("a,b");
  const { current: first } = servers;
  servers.leave(first);
  servers.leave(first); // another pool, later
  expect(servers.current.name).toBe("b:5432");
  servers.leave(servers.current);
  expect(servers.current).toBe(first);
});

test("once a pool has an answer from another server, every pool asks that one and what waits is asked again", async () => {
  const servers = serversOf("old,new");
  /** A pool whose statements wait on a server that does not answer until their client is ended. */
  const pool = () => {
    let server = servers.current;
    const clients = new Clients(
      (_, elsewhere) => {
        if (elsewhere) servers.leave(server);
        server = servers.current;
        const { promise, reject } = Promise.withResolvers<string>();
        const ended = Object.assign(new Error("ended"), { code: "CONNECTION_DESTROYED" });
        const isOld = server.name === "old:5432";
        return { answer: isOld ? promise : Promise.resolve("new"), end: async () => reject(ended) };
      },
      () => servers.answered(server),
    );
    servers.watch((answering) => answering !== server && clients.leave());
    return clients;
  };
  const [first, second] = [pool(), pool()];
  const waiting = second.ask(3, ({ answer }) => answer).answer;
  const { answer, giveUp } = first.ask(3, ({ answer }) => answer);
  answer.catch(() => {});
  giveUp();
  expect(await first.ask(3, ({ answer }) => answer).answer).toBe("new");
  expect(await waiting).toBe("new");
});

test("a refused sign-in is tried again by one pool in ten seconds, and at once with another password", () => {
  const file = join(newFolder(), "password");
  writeFileSync(file, "first");
  const servers = new Servers(parsePostgresUrl("postgres://u@h/db", { DATABASE_PASSWORD_FILE: file }).servers);
  const nowMs = performance.now();
  servers.refused(servers.current, servers.signIn(nowMs), "28P01");
  const passwordAt = (afterMs: number) => {
    try {
      return servers.signIn(nowMs + afterMs).pass;
    } catch (error) {
      return (error as Error).message;
    }
  };
  const refusal = `h:5432 refuses the user or the password (28P01): correct ${file}, which is read again when it has changed`;
  expect([0, 9_000, 11_000, 11_000, 20_000, 22_000].map(passwordAt)).toEqual([
    ...[refusal, refusal, "first", refusal, refusal, "first"],
  ]);
  writeFileSync(file, "second");
  expect([23_000, 23_000].map(passwordAt)).toEqual(["second", "second"]);
  rmSync(file);
  expect(passwordAt(24_000)).toBe("second");
  servers.answered(servers.current);
  expect(servers.refusal).toBeUndefined();
});

test("each client is checked before its first query, and again when the last check is a minute old", async () => {
  let nowMs = 0;
  spyOn(performance, "now").mockImplementation(() => nowMs);
  const checked: number[] = [];
  let fault: Refused | undefined;
  let made = 0;
  const clients = new Clients(
    () => ({ number: made++, end: async () => {} }),
    () => {},
    async ({ number }) => {
      checked.push(number);
      if (fault) throw fault;
    },
  );
  const ask = () => clients.ask(1, async ({ number }) => number).answer.catch((error: unknown) => error);
  expect(await Promise.all([ask(), ask(), ask()])).toEqual([0, 0, 0]);
  nowMs += 59_999;
  expect([await ask(), checked]).toEqual([0, [0]]);
  fault = new Refused("unavailable", "trigger t on table sets");
  nowMs += 1;
  expect([await ask(), await ask(), checked]).toEqual([fault, fault, [0, 0, 0]]);
  fault = undefined;
  expect([await ask(), checked.length]).toEqual([0, 4]);
  await clients.ask(1, fails).answer.catch(() => {});
  nowMs += 1000;
  expect([await ask(), checked.at(-1)]).toEqual([1, 1]);
});
