/** `keyhole run` as a process: what the command gets of its caller, and what of Keyhole is left beside it. */
import { describe, expect, test } from "bun:test";
import { chmodSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fromSource } from "../support/from-source.ts";
import { binary, makePlace } from "../support/keyhole.ts";
import { machineMaker } from "../support/machine.ts";
import { startProgram } from "../support/program.ts";
import { findProgram, noteMissing, withPrograms } from "../support/programs.ts";

const machine = machineMaker();
const isLinux = process.platform === "linux";

/** A caller that has done this, in bash, before it becomes the program. */
const after = (script: string) => ({ as: ["bash", "-c", `${script}; exec "$@"`, "bash"] });
/** The same caller, and the command without Keyhole. */
const directly = (script: string, command: readonly string[]) =>
  Bun.spawnSync(["bash", "-c", `${script}; exec "$@"`, "bash", ...command], { stdin: Buffer.of() }).stdout.toString();

const latin1 = "export X=$(printf 'caf\\351')";
const showX = ["sh", "-c", 'printf %s "$X" | od -An -tx1'];

describe.skipIf(!isLinux)("the command's environment has the caller's, byte for byte", () => {
  for (const options of [[], ["--files"], ["--preserve-env"], ["--keys", "MOTD"]]) {
    test(`with ${options.join(" ") || "no option"}`, async () => {
      const { keyhole } = await machine();
      const ran = await keyhole(["run", ...options, "--", ...showX], after(latin1));
      expect(ran).toEqual({ exitCode: 0, stdout: " 63 61 66 e9\n", stderr: "" });
    });
  }

  test("with --preserve-env in place of a fetched one", async () => {
    const { keyhole } = await machine();
    const show = ["sh", "-c", 'printf %s "$MOTD" | od -An -tx1'];
    const ran = await keyhole(["run", "--preserve-env", "--", ...show], after("export MOTD=$(printf 'caf\\351')"));
    expect(ran.stdout).toBe(" 63 61 66 e9\n");
  });

  test("with --no-inherit-env what is left of it", async () => {
    const { keyhole } = await machine();
    const caller = after("export HOME=$(printf '/home/caf\\351')");
    const ran = await keyhole(["run", "--no-inherit-env", "--", "sh", "-c", 'printf %s "$HOME" | od -An -tx1'], caller);
    expect(ran.stdout).toBe(" 2f 68 6f 6d 65 2f 63 61 66 e9\n");
  });

  test("from the source too", async () => {
    const { keyhole } = await machine();
    const { as, program, env } = fromSource();
    const ran = await keyhole(["run", "--", ...showX], { as: [...after(latin1).as, ...as], program, env });
    expect(ran).toEqual({ exitCode: 0, stdout: " 63 61 66 e9\n", stderr: "" });
  });

  withPrograms(["python3"], "and whatever else it holds", (python) => {
    test("a name that is not UTF-8, an entry without =, a name that is there twice", async () => {
      const { keyhole } = await machine();
      // A mapping, which Python's own functions take, cannot hold these.
      const caller = `import ctypes, os, sys
words = [os.fsencode(word) for word in sys.argv[1:]]
own = [b"NOEQUALS", b"N\\xff=v", b"D=1", b"D=2"] + [k + b"=" + v for k, v in os.environb.items() if k.startswith(b"KEYHOLE_")]
vector = lambda list: (ctypes.c_char_p * (len(list) + 1))(*list, None)
ctypes.CDLL(None).execve(words[0], vector(words), vector(own))`;
      const run = ["run", "--keys", "API_TOKEN", "--", "base64", "-w0", "/proc/self/environ"];
      const ran = await keyhole(run, { as: [python, "-c", caller], env: { HOME: process.env["HOME"] ?? "/" } });
      expect(ran.stderr).toBe("");
      const entries = Buffer.from(ran.stdout, "base64").toString("latin1");
      expect(entries).toBe("NOEQUALS\0N\xff=v\0D=1\0D=2\0API_TOKEN=tok-123456\0");
    });
  });

  test("and its PATH leads to a folder whose name is not UTF-8", async () => {
    const { keyhole, folder } = await machine();
    const make = `mkdir $'d\\xe9' && printf '#!/bin/sh\\necho found' > $'d\\xe9/tool' && chmod 755 $'d\\xe9/tool'`;
    const ran = await keyhole(["run", "--", "tool"], after(`${make} && export PATH=${folder}/$'d\\xe9':$PATH`));
    expect(ran).toEqual({ exitCode: 0, stdout: "found\n", stderr: "" });
  });
});

describe.skipIf(!isLinux)("a variable that is not UTF-8 is refused by name where it would not arrive", () => {
  const refused = (exitCode: number) => ({
    exitCode,
    stdout: "",
    stderr: "keyhole: The variable X is not UTF-8, so it would not arrive unchanged: unset it first.\n",
  });

  test("by run --watch", async () => {
    const { keyhole } = await machine();
    expect(await keyhole(["run", "--watch", "--", "touch", "ran"], after(latin1))).toEqual(refused(125));
  });

  test("by the root key's command, ssh and the editor", async () => {
    const place = makePlace({ PATH: process.env["PATH"] ?? "", KEYHOLE_ACTOR: "ann" });
    try {
      await place.keyhole(["org", "create", "acme"]);
      await place.keyhole(["project", "create", "acme/web"]);
      const run = async (args: readonly string[], env: Readonly<Record<string, string>>) => {
        const all = { ...place.env, ...env };
        const child = Bun.spawnSync([...after(latin1).as, binary, ...args], { cwd: place.folder, env: all });
        return { exitCode: child.exitCode, stdout: child.stdout.toString(), stderr: child.stderr.toString() };
      };
      expect(await run(["org", "list"], { KEYHOLE_ROOT_KEY_COMMAND: "cat key" })).toEqual(refused(2));
      expect(await run(["org", "list"], { KEYHOLE_SSH: "a@b" })).toEqual(refused(2));
      expect(await run(["var", "edit", "web", "staging"], { EDITOR: "touch" })).toEqual(refused(2));
    } finally {
      place.remove();
    }
  });

  test("U+FFFD itself is UTF-8", async () => {
    const { keyhole } = await machine();
    const ran = await keyhole(["run", "--watch", "--", ...showX], { env: { X: "\uFFFD" } });
    expect(ran).toEqual({ exitCode: 0, stdout: " ef bf bd\n", stderr: "" });
  });
});

describe.skipIf(!isLinux)("the caller's descriptors", () => {
  const passing = "exec 9< /etc/passwd 60< <(echo from-a-pipe)";
  for (const watch of [[], ["--watch"]]) {
    const how = watch.length === 0 ? "" : " under --watch";
    test(`reach the command, and no other does${how}`, async () => {
      const { keyhole } = await machine();
      const names = "ls -l /proc/self/fd | sed 's/.* //' | sed 's/[0-9]*]$//;s/[0-9]*\\/fd$//'";
      const list = ["sh", "-c", `${names}; ls /proc/self/fd`];
      const ran = await keyhole(["run", ...watch, "--", ...list], after(passing));
      expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
      expect(ran.stdout).toContain("\n/etc/passwd\n");
      expect(ran.stdout).toContain("\n60\n");
      // Bun.spawnSync has other streams than the program above, so only what is not a stream is compared.
      const named = (text: string) => text.split("\n").filter((line) => /^\d+$/.test(line));
      expect(named(ran.stdout)).toEqual(named(directly(passing, list)));
    });

    test(`are read by it: a process substitution, and a stream of 3 MB whose reader is slow${how}`, async () => {
      const { keyhole } = await machine();
      const run = `"$0" run ${watch.join(" ")} --`;
      const script = `${run} cat <(echo substituted); ${run} head -c 3000000 /dev/zero | (sleep 0.3; wc -c)`;
      const ran = await keyhole(["-c", script, binary], { program: "bash" });
      expect(ran).toEqual({ exitCode: 0, stdout: "substituted\n3000000\n", stderr: "" });
    });
  }

  test("keep their flags", async () => {
    const { keyhole } = await machine();
    const infos = [0, 1, 2].map((fd) => `/proc/self/fdinfo/${fd}`);
    const ran = await keyhole(["run", "--", "grep", "-h", "flags", ...infos]);
    const nonBlocking = 0o4000;
    const flags = [...ran.stdout.matchAll(/flags:\s*(\d+)/g)].map(([, octal = ""]) => Number.parseInt(octal, 8));
    expect(flags.map((one) => one & nonBlocking)).toEqual([0, 0, 0]);
  });

  test("are systemd's sockets: number 3, and LISTEN_PID is the command's", async () => {
    const { keyhole } = await machine();
    const caller = after("exec 3< /etc/passwd; export LISTEN_FDS=1 LISTEN_PID=$$");
    const show = "echo $(($LISTEN_PID - $$)) $LISTEN_FDS; readlink /proc/self/fd/3";
    const ran = await keyhole(["run", "--", "sh", "-c", show], caller);
    expect(ran.stdout).toBe("0 1\n/etc/passwd\n");
  });
});

describe.skipIf(!isLinux)("the command's signals", () => {
  const show = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"];
  const none = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n";
  for (const watch of [[], ["--watch"]]) {
    test(`are neither blocked nor ignored${watch.length === 0 ? "" : " under --watch"}`, async () => {
      const { keyhole } = await machine();
      const ran = await keyhole(["run", ...watch, "--", ...show], after("trap '' HUP PIPE USR1"));
      expect(ran).toEqual({ exitCode: 0, stdout: none, stderr: "" });
    });
  }

  withPrograms(["python3"], "of a caller that blocks them", (python) => {
    test("are not blocked", async () => {
      const { keyhole } = await machine();
      const block =
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [10, 15]); os.execv(sys.argv[1], sys.argv[1:])";
      const env = { HOME: process.env["HOME"] ?? "/" };
      const ran = await keyhole(["run", "--", ...show], { as: [python, "-c", block], env });
      expect(ran.stdout).toBe(none);
    });
  });
});

describe.skipIf(!isLinux)("the command takes the place of run", () => {
  test("with its process id, and no process of Keyhole is left", async () => {
    const { env, folder } = await machine();
    const child = Bun.spawn([binary, "run", "--", "sh", "-c", "echo $$ $PPID; read -r line"], {
      cwd: folder,
      env: { PATH: process.env["PATH"] ?? "", ...env },
      stdin: "pipe",
      stdout: "pipe",
    });
    const { value } = await child.stdout.getReader().read();
    expect(new TextDecoder().decode(value)).toBe(`${child.pid} ${process.pid}\n`);
    expect(readlinkSync(`/proc/${child.pid}/exe`)).not.toContain("keyhole");
    expect(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8")).toBe("");
    expect(readFileSync(`/proc/${child.pid}/status`, "utf8")).toContain("Threads:\t1\n");
    child.kill("SIGTERM");
    await child.exited;
    expect(child.signalCode).toBe("SIGTERM");
  });

  test("after all messages, and after the files are in place", async () => {
    const { keyhole, key } = await machine();
    const ran = await keyhole(["run", "--files", "--", "cat", "service.json"], { env: { CI_KEY: key } });
    expect(ran).toEqual({ exitCode: 0, stdout: '{"a":1}\n', stderr: "Not passed to the command: CI_KEY.\n" });
  });

  for (const watch of [[], ["--watch"]]) {
    test(`and a text without an interpreter line is run by a shell, a foreign program is not ${watch}`, async () => {
      const { keyhole, folder } = await machine();
      writeFileSync(join(folder, "text"), 'echo "$0 $1 $API_TOKEN"; exit 3\n');
      writeFileSync(join(folder, "foreign"), "\x7fELF\0not for this machine");
      for (const name of ["text", "foreign"]) chmodSync(join(folder, name), 0o755);
      const ran = await keyhole(["run", ...watch, "--", "./text", "one"]);
      expect(ran).toEqual({ exitCode: 3, stdout: "./text one tok-123456\n", stderr: "" });
      const foreign = await keyhole(["run", ...watch, "--", "./foreign"]);
      expect(foreign).toMatchObject({ exitCode: 126, stdout: "" });
      expect(foreign.stderr).toContain("it is not a program for this machine");
    });
  }
});

const unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
const mayUnshare = findProgram("unshare") !== undefined && Bun.spawnSync([...unshare, "true"]).exitCode === 0;
if (!mayUnshare) noteMissing(["unshare"], "run as process 1");
describe.skipIf(!mayUnshare)("as process 1", () => {
  test("the command itself is process 1", async () => {
    const { keyhole } = await machine();
    const ran = await keyhole(["run", "--", "sh", "-c", "echo $$; exit 4"], { as: unshare });
    expect(ran).toEqual({ exitCode: 4, stdout: "1\n", stderr: "" });
  });

  test("run --watch leaves no zombie of a process whose parent ended", async () => {
    const { keyhole } = await machine();
    const script = `for i in 1 2 3; do (sleep 0.1 & exec true); done; echo "$PPID"; sleep 0.5
      for i in $(seq 100); do grep -q '^State:.Z' /proc/[0-9]*/status || exit 0; sleep 0.05; done; exit 9`;
    const ran = await keyhole(["run", "--watch", "24h", "--", "sh", "-c", script], { as: unshare });
    expect(ran).toEqual({ exitCode: 0, stdout: "1\n", stderr: "" });
  });

  test("run --watch passes the end of its command on", async () => {
    const { keyhole } = await machine();
    const script = "(sleep 0.2 & exec true); exit 5";
    const ran = await keyhole(["run", "--watch", "24h", "--", "sh", "-c", script], { as: unshare });
    expect(ran).toEqual({ exitCode: 5, stdout: "", stderr: "" });
  });
});

test.skipIf(!isLinux)("Docker's stop reaches the command without a process in between", async () => {
  const { env, folder } = await machine();
  const script = "trap 'echo stopping; exit 0' TERM; echo up; while :; do sleep 0.05; done";
  const options = { cwd: folder, env: { PATH: process.env["PATH"], ...env } };
  const program = startProgram([binary, "run", "--", "sh", "-c", script], options);
  await program.says("up\n");
  expect(await program.stop()).toBe(0);
  expect(program.said().stdout).toBe("up\nstopping\n");
});
