/** Three PostgreSQL servers that Patroni keeps, and the etcd that it keeps them by. All of them are on loopback. */
import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "./eventually.ts";
import { childrenOf, signalIfThere } from "./freeze.ts";
import { freePort } from "./port.ts";
import { asOwner, clusterFolder, clusterOwner, give, machineBinaries, readyPid } from "./postgres.ts";
import { type Ran, run } from "./program.ts";

/** One of the servers, and its Patroni. */
export type Member = {
  readonly name: string;
  /** Such as `127.0.0.1:5432`. */
  readonly host: string;
  /** Kills Patroni and all of PostgreSQL, as a machine that loses its power. Returns what starts them again. */
  readonly kill: () => () => void;
};

export type Patroni = {
  readonly members: readonly Member[];
  /** A database on all of them, for a superuser. */
  readonly urlOf: (database: string) => string;
  /** The member that leads, once there is one and a synchronous standby beside it. */
  readonly leader: () => Promise<Member>;
  readonly ctl: (...words: readonly string[]) => Promise<Ran>;
  readonly stop: () => Promise<void>;
};

/**
 * Starts them.
 * @param settings - `bootstrap.dcs` of Patroni's configuration
 * @param programs - the paths of Patroni, patronictl and etcd
 */
export async function startPatroni(settings: object, programs: readonly string[]): Promise<Patroni> {
  const [patroni = "", patronictl = "", etcd = ""] = programs;
  const owner = clusterOwner();
  const folder = owner && clusterFolder(owner);
  const [bin] = machineBinaries();
  if (owner === undefined || folder === undefined || bin === undefined) throw new Error("PostgreSQL cannot run here");
  const password = randomBytes(16).toString("hex");
  const [clients, peers] = [freePort(), freePort()].map((port) => `http://127.0.0.1:${port}`) as [string, string];
  const as = (username: string) => ({ username, password });
  const planned = ["n1", "n2", "n3"].map((name) => {
    const [host, api] = [freePort(), freePort()].map((port) => `127.0.0.1:${port}`) as [string, string];
    const data = join(folder, name, "data");
    const config = {
      scope: "keyhole",
      name,
      restapi: { listen: api, connect_address: api },
      etcd3: { hosts: [new URL(clients).host] },
      bootstrap: { dcs: settings, initdb: [{ encoding: "UTF8" }, { locale: "C" }, "no-sync"] },
      postgresql: {
        listen: host,
        connect_address: host,
        data_dir: data,
        bin_dir: bin,
        pgpass: join(folder, name, "pgpass"),
        authentication: { superuser: as("keyhole"), replication: as("replicator"), rewind: as("rewinder") },
        pg_hba: ["all", "replication"].map((database) => `host ${database} all 127.0.0.1/32 scram-sha-256`),
        parameters: { unix_socket_directories: "" },
      },
    };
    mkdirSync(join(folder, name));
    const file = join(folder, name, "patroni.json"); // JSON is YAML
    writeFileSync(file, JSON.stringify(config));
    return { name, host, api, data, file };
  });
  give(folder, owner);

  const keepers = new Set<Bun.Subprocess<"pipe", Bun.BunFile, Bun.BunFile>>();
  const start = (name: string, data: string, command: readonly string[]) => {
    const log = Bun.file(join(folder, `${name}.log`));
    const pipes = { stdin: "pipe", stdout: log, stderr: log } as const;
    const words = ["/bin/sh", "-c", keeper, "keeper", data, ...command];
    const child = Bun.spawn(words, { ...asOwner(owner, folder), ...pipes, detached: true });
    keepers.add(child);
    return child;
  };
  start("etcd", "", [
    ...[etcd, "--data-dir", join(folder, "etcd"), "--initial-cluster", `default=${peers}`],
    ...["--listen-client-urls", clients, "--advertise-client-urls", clients],
    ...["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers],
  ]);
  const members = planned.map(({ name, host, api, data, file }) => {
    let running = start(name, data, [patroni, file]);
    const kill = () => {
      const postmaster = readyPid(data) ?? 0;
      for (const pid of [...childrenOf(running.pid), postmaster, ...childrenOf(postmaster)])
        signalIfThere(pid, "SIGKILL");
      return () => {
        running = start(name, data, [patroni, file]);
      };
    };
    return { name, host, api, file, kill };
  });
  const listed = async () => {
    const asked = members.map(({ api }) => fetch(`http://${api}/cluster`).then((answer) => answer.json()));
    const [cluster] = (await Promise.allSettled(asked)).flatMap((one) =>
      one.status === "fulfilled" ? [one.value] : [],
    );
    return ((cluster as Cluster | undefined)?.members ?? []).filter(({ state }) => works.includes(state));
  };
  const leader = () =>
    eventually(async () => {
      const all = await listed();
      const [found] = all.filter(({ role }) => role === "leader");
      return all.some(({ role }) => role === "sync_standby") && members.find(({ name }) => name === found?.name);
    });
  const stop = async () => {
    for (const one of keepers) await one.stdin.end();
    for (const one of keepers) await one.exited;
    rmSync(folder, { recursive: true, force: true });
  };
  return {
    members,
    urlOf: (database) => `postgres://keyhole:${password}@${members.map(({ host }) => host).join()}/${database}`,
    leader,
    ctl: (...words) => run([patronictl, "--config-file", members[0]?.file ?? "", ...words], asOwner(owner, folder)),
    stop,
  };
}

type Cluster = { readonly members: readonly { name: string; role: string; state: string }[] };
const works = ["running", "streaming"];

/**
 * Runs a command until its standard input ends, which is a pipe from the tests: it also ends if they are killed. Then it
 * kills the command, and the PostgreSQL that the command started.
 */
const keeper = `
data=$1
shift
exec 3<&0
"$@" </dev/null &
read -r _ <&3
kill -KILL "$!"
[ ! -f "$data/postmaster.pid" ] || kill -QUIT "$(head -n 1 "$data/postmaster.pid")"
wait
`;
