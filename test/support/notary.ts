import { binary } from "./keyhole.ts";
import { freePort } from "./port.ts";
import { eventually, memoryOf, type Server, type Site } from "./server.ts";

type RunningNotary = {
  /** The origin of its metrics. */
  readonly ops: string;
  /** Its log so far. */
  readonly said: () => string;
  readonly stop: () => Promise<number | null>;
  readonly kill: () => Promise<unknown>;
  readonly memory: Server["memory"];
};

/** Lets the notary work until all that is on record is in the signed tree. */
export async function signAll(site: Site): Promise<void> {
  const notary = await startNotary(site);
  const unsigned = `select 1 where (select count(*) from audit_segments) >
    (select coalesce(max(size), 0) from audit_checkpoints_signed)`;
  await eventually(async () => (await site.sql(unsigned)).length === 0);
  await notary.stop();
}

/** Starts what is the notary of this database: the server, or a process beside it. @param more - settings */
export async function startNotary(site: Site, more: Readonly<Record<string, string>> = {}): Promise<RunningNotary> {
  const env = { KEYHOLE_OPS_PORT: String(freePort()), ...more };
  if (site.dialect === "sqlite") {
    const server = await site.serve({ env });
    return {
      ops: server.ops(),
      said: () => server.said().stdout,
      stop: server.stop,
      kill: server.kill,
      memory: server.memory,
    };
  }
  const child = Bun.spawn([binary, "notary"], {
    cwd: site.folder,
    env: { ...site.env, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const output = { stdout: "", stderr: "" };
  const collect = async (name: keyof typeof output) => {
    const decoder = new TextDecoder();
    for await (const bytes of child[name]) output[name] += decoder.decode(bytes, { stream: true });
  };
  const collected = Promise.all([collect("stdout"), collect("stderr")]);
  await eventually(() => output.stderr.includes("every 60 s"));
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    const code = await child.exited;
    await collected;
    return code;
  };
  const ops = /metrics are on (\S+)/.exec(output.stderr)?.[1] ?? "";
  const memory = () => memoryOf(child.pid);
  return { ops, said: () => output.stdout, stop: () => end("SIGTERM"), kill: () => end("SIGKILL"), memory };
}
