import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./eventually.ts";
import { binary, runBinary } from "./keyhole.ts";
import { freePort } from "./port.ts";
import type { Ran } from "./program.ts";
import { findProgram } from "./programs.ts";

/** An sshd of the tests' own on loopback. */
export type Bastion = {
  readonly folder: string;
  /** `user@host`, for the program's KEYHOLE_SSH with {@link Bastion.path}. */
  readonly host: string;
  /** A PATH whose `ssh` is this person's: with their key, and this sshd. */
  readonly path: (person: string) => string;
  /** Makes a key pair. @returns the public key's line */
  readonly keyOf: (person: string) => string;
  /** Lets whoever has a key in. @param line - as `keyhole person ssh` prints it */
  readonly letIn: (line: string) => void;
  /** Lets exactly these in. */
  readonly letInAll: (lines: string) => void;
  /** The account that everybody comes to. */
  readonly user: string;
  /** Runs `ssh` as a person. @param options - of ssh, before the host */
  readonly ssh: (person: string, words: readonly string[], stdin?: string, options?: readonly string[]) => Promise<Ran>;
  readonly stop: () => Promise<void>;
};

/**
 * Starts sshd as the user who runs the tests, who is also the account that everybody comes to. It takes more of
 * a client's environment than it should, and forwards whatever it is asked to: only the line of a key restricts.
 * @param env - what the account has in its environment
 */
export async function startBastion(env: Readonly<Record<string, string>>): Promise<Bastion> {
  const folder = mkdtempSync(join(tmpdir(), "keyhole-sshd-"));
  const [sshd = "", ssh = "", keygen = ""] = ["sshd", "ssh", "ssh-keygen"].map((name) => findProgram(name));
  const bin = join(folder, "bin");
  mkdirSync(bin);
  symlinkSync(binary, join(bin, "keyhole"));
  const make = (name: string) =>
    Bun.spawnSync([keygen, "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", join(folder, name)]);
  make("host");
  writeFileSync(join(folder, "authorized_keys"), "");
  const port = freePort();
  // A shell under sshd begins with the account's own .bashrc.
  const settings = Object.entries({ ...env, HOME: folder, PATH: `${bin}:/usr/bin:/bin` }).map(
    ([name, value]) => `${name}=${value}`,
  );
  const lines = [
    `Port ${port}`,
    "ListenAddress 127.0.0.1",
    `HostKey ${join(folder, "host")}`,
    `AuthorizedKeysFile ${join(folder, "authorized_keys")}`,
    "PidFile none",
    "StrictModes no",
    ...["UsePAM no", "PermitRootLogin yes", "PasswordAuthentication no", "KbdInteractiveAuthentication no"],
    ...["AcceptEnv LC_* KEYHOLE_* SUDO_USER SSH_* EDITOR VISUAL", "AllowTcpForwarding yes", "AllowAgentForwarding yes"],
    ...["PermitTunnel yes", "X11Forwarding yes", "Subsystem sftp internal-sftp", "MaxStartups 100"],
    "KexAlgorithms curve25519-sha256", // a third of a connection's time goes to those that resist quantum computers
    `SetEnv ${settings.map((one) => `"${one}"`).join(" ")}`,
  ];
  writeFileSync(join(folder, "sshd_config"), `${lines.join("\n")}\n`);
  if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
  const server = Bun.spawn([sshd, "-D", "-e", "-f", join(folder, "sshd_config")], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: Bun.file(join(folder, "log")),
  });
  await eventually(() => {
    if (server.exitCode !== null) throw new Error(`sshd ended: ${readFileSync(join(folder, "log"), "utf8")}`);
    return Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => {} } }).then(
      (socket) => [socket.end()],
      () => undefined,
    );
  });
  const user = Bun.spawnSync(["id", "-un"]).stdout.toString().trim();
  const host = `${user}@127.0.0.1`;
  const path = (person: string) => {
    const own = join(folder, `bin-${person}`);
    mkdirSync(own, { recursive: true });
    const options = [
      ...["-F", "none", "-p", String(port), "-i", join(folder, person), "-o", "IdentitiesOnly=yes"],
      ...["-o", "IdentityAgent=none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"],
      ...["-o", "LogLevel=ERROR"],
    ];
    // The name that the pages give to the host.
    const alias = ["-o", "HostName=127.0.0.1", "-o", `User=${user}`];
    writeFileSync(join(own, "ssh"), `#!/bin/sh\nexec ${ssh} ${[...options, ...alias].join(" ")} "$@"\n`);
    chmodSync(join(own, "ssh"), 0o755);
    return `${own}:/usr/bin:/bin`;
  };
  return {
    folder,
    host,
    path,
    keyOf: (person) => {
      make(person);
      return readFileSync(join(folder, `${person}.pub`), "utf8");
    },
    user,
    letInAll: (lines) => writeFileSync(join(folder, "authorized_keys"), lines),
    letIn: (line) => writeFileSync(join(folder, "authorized_keys"), line, { flag: "a" }),
    ssh: async (person, words, stdin = "", options = []) => {
      path(person);
      const program = join(folder, `bin-${person}`, "ssh");
      return runBinary([...options, host, ...words], { program, env: process.env as Record<string, string>, stdin });
    },
    stop: async () => {
      server.kill();
      await server.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
