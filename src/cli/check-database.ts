import { existsSync } from "node:fs";
import { join } from "node:path";
import { exits, Problem } from "../core/problem.ts";
import { readConfig } from "../core/settings/settings.ts";
import { counted } from "../core/words/text.ts";
import { checkServers, type Host } from "../installation/check-database.ts";
import { notBegun } from "../installation/installation.ts";
import { answer } from "./terminal/answer.ts";
import { processCommand } from "./terminal/draw.ts";
import { write } from "./terminal/terminal.ts";

export const check = processCommand({
  path: "db check",
  about: "Say what the servers of DATABASE_URL are, and whether a failover could lose a read that was acknowledged.",
  examples: ["keyhole db check", "keyhole db check --json"],
  right: "operator",
  inputs: {},
  action: async (context) => {
    const { postgres, dataFolder } = readConfig(context.env, false);
    if (postgres === undefined) {
      const file = join(dataFolder, "keyhole.db");
      if (!existsSync(file)) throw notBegun(`in ${dataFolder}`);
      const words = `${file} is the database: one file, written with synchronous = FULL. It has no standby, so no failover loses anything. Whether its disk keeps what it confirms, and whether there is a backup, this command cannot know.`;
      return answer(context, { hosts: [], losses: [], warnings: [] }, words);
    }
    const hosts = await checkServers(postgres.servers);
    const { losses, warnings } = judgeHosts(hosts);
    const document = { hosts, losses, warnings };
    const out = hosts
      .flatMap(hostLines)
      .map((line) => `${line}\n`)
      .join("");
    const warned = warnings.map((line) => `WARNING: ${line}`);
    if (losses.length === 0) return answer(context, document, [...warned, safe].join("\n"), out);
    if (!context.json) {
      await write(context.terminal.stdout, out);
      warned.forEach(context.say);
    }
    const words = `A failover could lose reads that were acknowledged, or hide it. ${losses.join(" ")}`;
    throw new Problem(exits.failed, "could_be_lost", words, { document });
  },
});

const safe = "A failover to a synchronous standby loses no read that was acknowledged.";

/**
 * @returns `losses`: why a failover could lose a read that was acknowledged, or nobody would notice; `warnings`: what
 *   else an operator should know
 */
export function judgeHosts(hosts: readonly Host[]): { losses: string[]; warnings: string[] } {
  const all = hosts.filter((one) => one.role === "primary");
  const primaries = all.filter(({ startedAt }, at) => at === all.findIndex((one) => one.startedAt === startedAt));
  const [losses, warnings]: [string[], string[]] = [[], []];
  if (primaries.length > 1) {
    const names = primaries.map(({ host }) => host).join(" and ");
    losses.push(`${names} answer as primary: shut down the old one.`);
  }
  for (const one of primaries) {
    const { host, version, clockAheadMs } = one;
    if (one.synchronousStandbyNames === "") {
      losses.push(`No commit on ${host} waits for a standby: set synchronous_standby_names there.`);
    }
    if (!one.commits) losses.push(`Commits on ${host} do not pass: a synchronous standby may be away.`);
    if (one.fsync !== "on") losses.push(`${host} has fsync = ${one.fsync}: turn it on.`);
    if (Math.abs(clockAheadMs) > clockOffMaxMs) {
      const way = clockAheadMs > 0 ? "ahead of" : "behind";
      warnings.push(`The clock of ${host} is ${Math.round(Math.abs(clockAheadMs) / 1000)} s ${way} this host's.`);
    }
    if (one.isPooled)
      warnings.push(`A pooler is between this host and ${host}: \`keyhole serve\` does not start behind it.`);
    if (!one.seesAll) {
      warnings.push(`This role cannot see all of ${host}'s standbys and addresses: a member of pg_read_all_stats can.`);
    }
    const [, major = "", minor = ""] = /^(\d+)\.(\d+)/.exec(version) ?? [];
    const mended = holesMendedIn[major];
    if (mended !== undefined && Number(minor) < mended) {
      const words = `${host} runs PostgreSQL ${major}.${minor}, which has holes that ${major}.${mended} of November 2025 closed`;
      warnings.push(`${words}: https://www.postgresql.org/support/security/ names newer ones.`);
    }
  }
  for (const one of hosts) {
    if (one.role === "unknown") losses.push(`${one.why} It may be a second primary.`);
  }
  if (!primaries.some(({ processes }) => processes.some(({ name }) => name === "notary"))) {
    losses.push("No notary is connected: nobody would notice a loss.");
  }
  return { losses, warnings };
}

const clockOffMaxMs = 5000;

/** The minor version of 13 November 2025 of each major one. It closed CVE-2025-12817 and CVE-2025-12818. */
const holesMendedIn: Readonly<Record<string, number>> = { 15: 15, 16: 11, 17: 7, 18: 1 };

/** What is said of one host, line by line. */
function hostLines(one: Host): string[] {
  const { host } = one;
  if (one.role === "unknown") return [one.why];
  if (one.role === "standby") return [`${host} is a standby.`];
  const { version, synchronousStandbyNames: names, standbys, processes } = one;
  const synchronous = standbys.filter((standby) => standby.synchronous).length;
  const waits = names === "" ? "no commit waits for a standby" : `synchronous_standby_names = ${names}`;
  return [
    `${host} is primary: PostgreSQL ${version}; commits ${one.commits ? "pass" : "do not pass"}; ${waits}.`,
    one.seesAll
      ? `${host} has ${counted(synchronous, "synchronous standby")} of ${standbys.length}.`
      : `${host} has ${counted(standbys.length, "standby")}.`,
    ...standbys.map(({ name, address, state, synchronous, bytesBehind }) => {
      const how = state === null ? "" : `: ${synchronous ? "synchronous" : "asynchronous"}, ${state}`;
      const lag = bytesBehind === null ? "" : `, ${counted(bytesBehind, "byte")} behind`;
      return `${host} sends to ${name} at ${address ?? "an address that is not shown"}${how}${lag}.`;
    }),
    ...(["serve", "notary"] as const).map((name) => {
      const at = processes
        .filter((process) => process.name === name)
        .map(({ address }) => address ?? "an address that is not shown");
      return at.length === 0 ? `No ${name} is connected to ${host}.` : `${host} has ${name} from ${at.join(", ")}.`;
    }),
  ];
}
