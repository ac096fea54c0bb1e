import { eventually } from "./eventually.ts";
import { binary } from "./keyhole.ts";
import { freePort } from "./port.ts";
import { startProgram } from "./program.ts";
import { memoryOf, type Server, type Site } from "./server.ts";

type RunningNotary = {
  /** The origin of its metrics. */
  readonly ops: string;
  /** Its log so far. */
  readonly said: () => string;
  readonly says: Server["says"];
  readonly stop: Server["stop"];
  readonly memory: Server["memory"];
};

/** Selects the lanes that have entries outside the signed tree. */
export const unsigned = `select lane from audit_segments group by lane having max(last_seq) > (
  select coalesce(max(last_seq), 0) from audit_leaves where audit_leaves.lane = audit_segments.lane)`;

/** Lets the notary work until all that is on record is in the signed tree. */
export async function signAll(site: Site): Promise<void> {
  const notary = await startNotary(site);
  await eventually(async () => (await site.sql(unsigned)).length === 0);
  await notary.stop();
}

/** Starts what is the notary of this database: the server, or a process beside it. @param more - settings */
export async function startNotary(site: Site, more: Readonly<Record<string, string>> = {}): Promise<RunningNotary> {
  const env = { KEYHOLE_OPS_PORT: String(freePort()), ...more };
  if (site.dialect === "sqlite") {
    const server = await site.serve({ env });
    const { says, stop, memory } = server;
    return { ops: server.ops(), said: () => server.said().stdout, says, stop, memory };
  }
  const notary = startProgram([binary, "notary"], { cwd: site.folder, env: { ...site.env, ...env } });
  await notary.says("every 60 s");
  const { said, says, stop, pid } = notary;
  const ops = /metrics are on (\S+)/.exec(said().stderr)?.[1] ?? "";
  return { ops, said: () => said().stdout, says, stop, memory: () => memoryOf(pid) };
}
