/** A release made of the built program: each artefact is installed and used from an empty environment. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse as parseYaml } from "yaml";
import { targets } from "../../.ci/artifacts/targets.ts";
import { publisher, version } from "../../package.json";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { binary, runBinary, startOnTerminal } from "../support/keyhole.ts";
import { blocksOf } from "../support/markdown.ts";
import { adapt, isRun, makeBin } from "../support/page.ts";
import { freePort } from "../support/port.ts";
import { outputOf, type ProgramOptions, type Ran, run as runProgram } from "../support/program.ts";
import { findProgram, noteMissing, whereInstalled, withPrograms } from "../support/programs.ts";
import { furnish, makeSite, type Site } from "../support/server.ts";

/** A version before a release sorts before it. */
const ofDebian = version.replace("-", "~");

setDefaultTimeout(120_000); // packing compresses the program four times

const root = join(import.meta.dir, "../..");
const target = targets.find(
  ({ os, cpu, libc }) => os === process.platform && cpu === process.arch && libc !== "musl",
) as (typeof targets)[number];
const tools = ["git", "node", "npm", "npx", "umoci", "bwrap", "apt-get", "dpkg-deb", "gpg", "minisign"];

withPrograms(tools, "a release", (git, node, npm, npx, umoci, bwrap) => {
  let folder: string;
  let release: string;
  let made: readonly string[];
  let publicKey: string;
  const at = (...path: string[]) => join(folder, ...path);
  const artefact = (name: string) => join(release, name);
  const top = `keyhole-${version}-${target.name}`;
  const gpg = {
    get GNUPGHOME() {
      return at("gpg");
    },
  };
  const verify = (...files: string[]) =>
    runBinary(["version", "--verify", ...files, "--key", publicKey], { cwd: release });

  /** Which of the ways to check a file of the release accept it. */
  const whatAccepts = async (file: string): Promise<string[]> => {
    const ways: Readonly<Record<string, () => Promise<Ran>>> = {
      minisign: () => run(["minisign", "-Vm", file, "-P", publicKey], { cwd: release }),
      gpg: () => run(["gpg", "--verify", "Release.gpg", "Release"], { cwd: artefact("apt/dists/stable"), env: gpg }),
      sha256sum: () => run(["sh", "-c", `grep -F "  $1" SHA256SUMS | sha256sum --check`, "sh", file], { cwd: release }),
      keyhole: () => verify(artefact(file)),
    };
    const accepted: string[] = [];
    for (const way of acceptedBy(file)) if ((await ways[way]?.())?.exitCode === 0) accepted.push(way);
    return accepted;
  };

  beforeAll(async () => {
    folder = newFolder();
    release = at("release");
    mkdirSync(release);
    const bill = { serialNumber: "urn:uuid:random", annotations: [], metadata: { timestamp: "now" }, components: [{}] };
    writeFileSync(artefact(`keyhole-${version}.cdx.json`), JSON.stringify(bill));
    const packages = [process.execPath, "--no-env-file", ".ci/artifacts/packages.ts"];
    await done([...packages, release, `${target.name}=${binary}`], { cwd: root, env: { ...process.env } });
    made = filesIn(release);
    await done(["minisign", "-G", "-W", "-p", at("minisign.pub"), "-s", at("minisign.key")], {});
    publicKey = readFileSync(at("minisign.pub"), "utf8").split("\n")[1] ?? "";
    mkdirSync(gpg.GNUPGHOME, { mode: 0o700 });
    const makeKey = [
      ...["gpg", "--batch", "--passphrase", "", "--quick-generate-key", "keyhole", "ed25519", "sign", "never"],
    ];
    await done(makeKey, { env: gpg });
    await done([join(root, ".ci/sign"), at("minisign.key"), "keyhole", release], { env: gpg });
  });
  afterAll(() => run(["gpgconf", "--kill", "all"], { env: gpg }));

  describe("can be verified:", () => {
    test("SHA256SUMS covers every file and the program, and each file's name has the version", async () => {
      const sums = readFileSync(artefact("SHA256SUMS"), "utf8");
      const inside = `${top}/keyhole`;
      expect([...sums.matchAll(/ {2}(.*)$/gm)].map(([, file]) => file ?? "")).toEqual(
        [...made.filter((file) => file !== "SHA256SUMS"), inside].sort(),
      );
      const named = [version, ofDebian, "apt/dists/", "keyhole.rb", "SHA256SUMS"];
      expect(made.filter((file) => !named.some((part) => file.includes(part)))).toEqual([]);
      await done(["sha256sum", "--check", "--strict", "--ignore-missing", "SHA256SUMS"], { cwd: release });
    });

    test("signing changes no file of it", () => {
      const signatures = /\.minisig$|^apt\/keyhole\.asc$|^apt\/dists\/stable\/(InRelease|Release\.gpg)$/;
      expect(filesIn(release).filter((file) => !signatures.test(file))).toEqual([...made]);
    });

    test("each file by minisign, by sha256sum, and by the program, which knows itself too", async () => {
      for (const file of made) expect([file, await whatAccepts(file)]).toEqual([file, acceptedBy(file)]);
      const { stdout } = await verify();
      expect(stdout).toBe(`${binary} is the program of keyhole ${version}, as its publisher signed it.\n`);
    });

    test("a change of one byte in any file is refused by all of them", async () => {
      for (const file of filesIn(release).filter((one) => !one.startsWith("apt/dists/stable/InRelease"))) {
        const signature = file.endsWith(".minisig") ? file.replace(/\.minisig$/, "") : file;
        const restore = flip(artefact(file));
        const accepted = await whatAccepts(signature);
        restore();
        // Only the signature of SHA256SUMS counts for others than minisign.
        const still = file === signature || signature === "SHA256SUMS" ? [] : acceptedBy(signature).slice(1);
        expect([file, accepted]).toEqual([file, still]);
      }
    });

    test("a program with one more byte, and a file from elsewhere, are not of the release", async () => {
      const changed = at("changed");
      writeFileSync(changed, Buffer.concat([readFileSync(binary), Buffer.of(0)]), { mode: 0o755 });
      const ran = await run([changed, "version", "--verify", "--key", publicKey], { cwd: release });
      expect(ran).toEqual({ exitCode: 1, stdout: "", stderr: `keyhole: ${changed} is not what SHA256SUMS lists.\n` });
      rmSync(changed);
      const other = artefact("other.txt");
      writeFileSync(other, "");
      const { exitCode, stderr } = await verify(other);
      rmSync(other);
      const words = `keyhole: ${other} is not what SHA256SUMS lists.\n`;
      expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: words });
    });

    test("the provenance names every artefact, the commit and what came from elsewhere", async () => {
      const statement = JSON.parse(readFileSync(artefact(`keyhole-${version}.provenance.json`), "utf8"));
      const artefacts = made.filter((file) => !/SHA256SUMS|provenance/.test(file));
      const predicateType = "https://slsa.dev/provenance/v1";
      expect(statement).toMatchObject({ _type: "https://in-toto.io/Statement/v1", predicateType });
      expect(statement.subject).toEqual(
        artefacts.map((name) => ({ name, digest: { sha256: sha256(readFileSync(artefact(name))) } })),
      );
      const { buildDefinition } = statement.predicate;
      const commit = (await done([git, "rev-parse", "HEAD"], { cwd: root })).trim();
      expect(buildDefinition.externalParameters).toEqual({ commit, command: ".ci/release", targets: [target.name] });
      const [source, lock, runtime, libc] = buildDefinition.resolvedDependencies;
      expect(source.digest).toEqual({ gitCommit: commit });
      expect(lock.digest).toEqual({ sha256: sha256(readFileSync(join(root, "bun.lock"))) });
      expect(runtime.uri).toBe(`pkg:npm/%40oven/${target.runtime.slice("@oven/".length)}@${Bun.version}`);
      expect(libc.uri).toStartWith("pkg:deb/debian/libc6@");
    });
  });

  test("the bill of materials has Bun's runtime and glibc, and nothing that differs from run to run", async () => {
    const bill = JSON.parse(readFileSync(artefact(`keyhole-${version}.cdx.json`), "utf8"));
    const madeAt = (await done([git, "log", "-1", "--format=%ct"], { cwd: root })).trim();
    expect(bill).toEqual({
      serialNumber: expect.stringMatching(/^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      metadata: { timestamp: new Date(Number(madeAt) * 1000).toISOString() },
      components: [
        {},
        expect.objectContaining({ group: "@oven", name: target.runtime.slice("@oven/".length), version: Bun.version }),
        expect.objectContaining({
          group: "debian",
          name: "libc6",
          hashes: [{ alg: "SHA-256", content: expect.any(String) }],
        }),
      ],
    });
  });

  test("the archive holds the program, which runs alone", async () => {
    await done(["tar", "--extract", "--gzip", "--file", artefact(`${top}.tar.gz`), "--directory", folder], {});
    expect(readdirSync(at(top)).sort()).toEqual(["CHANGELOG.md", "LICENSE", "keyhole", "keyhole.service"]);
    expect(await done([at(top, "keyhole"), "version"], {})).toContain(version);
    expect(await firstSecret(at(top, "keyhole"))).toBe(2);
  });

  test("the formula names the archive by its place and checksum", async () => {
    const formula = readFileSync(artefact("keyhole.rb"), "utf8");
    expect(formula).toContain(
      `url "${publisher.releases}/v${version}/${top}.tar.gz"\n      sha256 "${sha256(readFileSync(artefact(`${top}.tar.gz`)))}"`,
    );
    const ruby = findProgram("ruby");
    if (ruby !== undefined) expect(await done([ruby, "-wc", artefact("keyhole.rb")], {})).toBe("Syntax OK\n");
    else noteMissing(["ruby"], "the syntax of the Homebrew formula");
  });

  describe("the chart", () => {
    test("has the version, and names the image by the digest of its index", async () => {
      const read = async (file: string) => {
        const chart = artefact(`keyhole-chart-${version}.tgz`);
        return parseYaml(await done(["tar", "--extract", "--to-stdout", "--file", chart, `keyhole/${file}`], {}));
      };
      expect(await read("Chart.yaml")).toMatchObject({ name: "keyhole", version, appVersion: version });
      const digest = `sha256:${sha256(readFileSync(artefact(`keyhole-${version}-oci-index.json`)))}`;
      expect((await read("values.yaml")).image).toMatchObject({ repository: publisher.image, digest });
    });

    whereInstalled(["helm"], "the chart of a release", (helm) => {
      test("is installed by Helm from its file", async () => {
        const chart = artefact(`keyhole-chart-${version}.tgz`);
        const words = ["template", "keyhole", chart, "--set", "rootKey.secret=root"];
        expect(await done([helm, ...words], { env: { HOME: folder } })).toContain(`image: ${publisher.image}@sha256:`);
      });
    });
  });

  describe("the npm package", () => {
    let registry: Registry;
    let printed: string;
    let installed: string;
    let launcher: string;
    let site: Site;
    const path = { PATH: process.env["PATH"] ?? "" };
    const npmEnv = () => ({ HOME: folder, npm_config_registry: registry.origin, npm_config_cache: at("cache") });

    beforeAll(async () => {
      registry = await serveRegistry(release);
      printed = await done([npx, "--yes", `keyhole@${version}`, "version"], { cwd: folder, env: npmEnv() });
      const [installation = ""] = readdirSync(at("cache/_npx"));
      installed = at("cache/_npx", installation);
      launcher = join(installed, "node_modules/.bin/keyhole");
      site = await makeSite("sqlite");
      await furnish(site, { production: { A: "one" } });
    });
    afterAll(async () => {
      await site?.remove();
      await registry?.stop();
    });

    test("runs with npx, and npm downloads the program of this machine alone", () => {
      expect(printed).toContain(version);
      expect([...new Set(registry.downloads)].sort()).toEqual(
        [`keyhole-${target.name}-${version}.tgz`, `keyhole-${version}.tgz`].sort(),
      );
    });

    test("leads to a first secret by the lines of the first page", async () =>
      expect(await firstSecret(launcher)).toBe(2));

    test("still has the client, and nothing else to import", async () => {
      const read = 'const { createClient } = await import("keyhole/client"); console.log(typeof createClient);';
      expect(await done([node, "--input-type=module", "-e", read], { cwd: installed })).toBe("function\n");
      const main = await run([node, "--input-type=module", "-e", 'import "keyhole"'], { cwd: installed });
      expect(main.stderr).toContain("ERR_PACKAGE_PATH_NOT_EXPORTED");
    });

    test.each([
      [["version"], ""],
      [["no such command"], ""],
      [["project", "list", "--org", "absent", "--json"], ""],
      [["pull", "--project", "a b", ""], ""],
      [["var", "set", "acme/web", "production", "A"], "one\ntwo"],
      [["var", "get", "acme/web", "production", "A"], ""],
    ])("passes arguments, stdin, output and exit code on: %j", async (args, stdin) => {
      const options = { cwd: site.folder, env: site.env, stdin };
      const launched = await run([launcher, ...args], options);
      const itself = await runBinary(args, options);
      expect(launched).toEqual(itself);
    });

    test("passes SIGTERM on, and ends as the program does", async () => {
      const server = await site.serve({ program: launcher, env: path });
      expect(await server.stop()).toBe(0);
      expect(server.said().stderr).toContain("finishing open requests");
    });

    test("ends by the signal that ended the program", async () => {
      const server = await site.serve({ program: launcher, env: path });
      const [child] = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, "utf8").split(" ");
      process.kill(Number(child), "SIGKILL");
      expect(await server.ended).toBeNull();
    });

    test("leaves Ctrl-C to the terminal: a server gets it once and drains", async () => {
      const terminal = startOnTerminal([launcher, "serve", "--port", "0"], 80, site.folder, { ...site.env, ...path });
      await terminal.shows("http://");
      terminal.type("\x03");
      const { exitCode, screen } = await terminal.ended;
      expect(exitCode).toBe(0);
      expect(screen).toContain("finishing open requests");
    });

    test("without the optional package says which one is missing", async () => {
      mkdirSync(at("bare"));
      writeFileSync(at("bare/package.json"), "{}");
      const install = [npm, "install", `keyhole@${version}`, "--omit=optional", "--no-audit", "--no-fund", "--silent"];
      await done(install, { cwd: at("bare"), env: npmEnv() });
      expect(await run([at("bare/node_modules/.bin/keyhole"), "version"], {})).toEqual({
        exitCode: 126,
        stdout: "",
        stderr: `keyhole: @keyhole/${target.name} is not installed: install keyhole@${version} again, with its optional packages.\n`,
      });
    });

    test.each([
      ["Object.defineProperty(process, 'arch', { value: 's390x' })", "There is no program for linux-s390x."],
      ["process.report.getReport = () => ({ header: {} })", `@keyhole/linux-${target.cpu}-musl is not installed: `],
    ])("on another machine says what is missing: %s", async (other, sentence) => {
      writeFileSync(at("other.cjs"), other);
      const { exitCode, stdout, stderr } = await run([node, "--require", at("other.cjs"), launcher, "version"], {});
      expect({ exitCode, stdout }).toEqual({ exitCode: 126, stdout: "" });
      expect(stderr).toStartWith(`keyhole: ${sentence}`);
    });
  });

  describe("the Debian package", () => {
    let system: string;
    const asRoot = [bwrap, "--dev-bind", "/", "/", "--unshare-user", "--uid", "0", "--gid", "0"];
    const alone = () => [`--root=${system}`, "--force-script-chrootless", "--log=/dev/null"];
    const apt = (...args: string[]) => {
      const options = {
        "Dir::State": at("apt/state"),
        "Dir::State::status": join(system, "var/lib/dpkg/status"),
        "Dir::Cache": at("apt/cache"),
        "Dir::Log": at("apt/log"),
        "Dir::Etc": at("apt/etc"),
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
      };
      const own = Object.entries(options).map(([name, value]) => `${name}=${value}`);
      const given = [...own, ...alone().map((option) => `DPkg::Options::=${option}`)];
      return run([...asRoot, "apt-get", ...given.flatMap((one) => ["-o", one]), "--yes", ...args], {});
    };
    const install = async () => {
      for (const args of [["update"], ["install", "--reinstall", "keyhole"]]) {
        const { exitCode, stdout, stderr } = await apt(...args);
        if (exitCode !== 0) throw new Error(`${stdout}${stderr}`);
      }
    };

    beforeAll(async () => {
      system = at("system");
      for (const path of ["info", "updates"]) mkdirSync(join(system, "var/lib/dpkg", path), { recursive: true });
      const libc = ["Package: libc6", "Status: install ok installed", "Maintainer: nobody", "Version: 2.36"];
      const more = [`Architecture: ${target.debian}`, "Description: as of this machine", "", ""];
      writeFileSync(join(system, "var/lib/dpkg/status"), [...libc, ...more].join("\n"));
      for (const path of ["state/lists/partial", "cache/archives/partial", "log", "etc"]) {
        mkdirSync(at("apt", path), { recursive: true });
      }
      const key = artefact("apt/keyhole.asc");
      writeFileSync(at("apt/etc/sources.list"), `deb [signed-by=${key}] file:${artefact("apt")} stable main\n`);
      await install();
    });

    test.each(["InRelease", "main/binary-ARCH/Packages.gz", "DEB"])(
      "is refused by apt if %s is changed",
      async (name) => {
        const stable = `apt/dists/stable/${name.replace("ARCH", target.debian ?? "")}`;
        const file = name === "DEB" ? `apt/pool/keyhole_${ofDebian}_${target.debian}.deb` : stable;
        rmSync(at("apt/state/lists"), { recursive: true });
        mkdirSync(at("apt/state/lists/partial"), { recursive: true });
        const restore = flip(artefact(file));
        const updated = await apt("update", "--error-on=any");
        const installed = await apt("install", "--reinstall", "keyhole");
        restore();
        const failed = [updated, installed].filter(({ exitCode }) => exitCode !== 0);
        expect(failed.map(({ stderr }) => stderr).join("")).toMatch(/signature|Hash Sum mismatch|unexpected size/);
      },
    );

    test("installs the program and the unit of docs/deploy", async () => {
      expect(await done([join(system, "usr/bin/keyhole"), "version"], {})).toContain(version);
      expect(await firstSecret(join(system, "usr/bin/keyhole"))).toBe(2);
      const unit = readFileSync(join(system, "usr/lib/systemd/system/keyhole.service"), "utf8");
      expect(unit).toContain("\nExecStart=/usr/bin/keyhole serve\n");
      const documented = readFileSync(join(root, "docs/deploy/keyhole.service"), "utf8");
      expect(unit.replaceAll("/usr/bin/", "/usr/local/bin/")).toBe(documented);
    });

    whereInstalled(["systemd-analyze"], "systemd", (analyze) => {
      test("finds nothing wrong with the unit", async () => {
        for (const name of ["sysinit.target", "basic.target", "network-online.target", "shutdown.target", "-.slice"]) {
          writeFileSync(join(system, "usr/lib/systemd/system", name), "[Unit]\nDescription=empty\n");
        }
        const verified = await run([analyze, "verify", "--man=no", `--root=${system}`, "keyhole.service"], {});
        expect(verified).toEqual({ exitCode: 0, stdout: "", stderr: "" });
      });
    });

    test("keeps settings when it is upgraded and removed", async () => {
      const settings = join(system, "etc/keyhole/keyhole.env");
      writeFileSync(settings, "DATABASE_URL=postgres://own\n");
      await install();
      await done([...asRoot, "dpkg", ...alone(), "--remove", "keyhole"], {});
      expect(existsSync(join(system, "usr/bin/keyhole"))).toBe(false);
      expect(readFileSync(settings, "utf8")).toBe("DATABASE_URL=postgres://own\n");
    });
  });

  describe("the image", () => {
    let rootfs: string;
    let layout: string;
    let process_: { readonly args: string[]; readonly env: string[]; readonly user: { uid: number; gid: number } };
    const port = freePort();
    /** Runs a command in the image, as its user and in its environment, except that the server listens on loopback. */
    const inside = (...command: string[]) => [
      ...[bwrap, "--bind", rootfs, "/", "--dev", "/dev", "--proc", "/proc", "--unshare-user", "--unshare-pid"],
      ...["--die-with-parent", "--as-pid-1", "--uid", String(process_.user.uid), "--gid", String(process_.user.gid)],
      ...["--clearenv", ...process_.env.flatMap((pair) => ["--setenv", ...(pair.split(/=(.*)/s).slice(0, 2) as [])])],
      ...["--setenv", "HOST", "127.0.0.1", "--setenv", "PORT", String(port), "--chdir", "/", "--", ...command],
    ];

    beforeAll(async () => {
      layout = at("layout");
      mkdirSync(layout);
      const archive = artefact(`keyhole-${version}-oci-${target.debian}.tar`);
      await done(["tar", "--extract", "--file", archive, "--directory", layout], {});
      const home = { HOME: folder };
      await done([umoci, "unpack", "--rootless", "--image", `${layout}:${version}`, at("bundle")], { env: home });
      rootfs = at("bundle/rootfs");
      process_ = JSON.parse(readFileSync(at("bundle/config.json"), "utf8")).process;
    });

    test("is a layout whose every blob has its digest", () => {
      const blobs = readdirSync(join(layout, "blobs/sha256"));
      expect(blobs).toHaveLength(5); // manifest, configuration and three layers
      for (const digest of blobs) expect(sha256(readFileSync(join(layout, "blobs/sha256", digest)))).toBe(digest);
    });

    test("runs as the Dockerfile's image does", () => {
      const read = ({ digest }: { digest: string }) =>
        JSON.parse(readFileSync(join(layout, "blobs", digest.replace(":", "/")), "utf8"));
      const index = JSON.parse(readFileSync(join(layout, "index.json"), "utf8"));
      const image = read(read(index.manifests[0]).config);
      expect(image).toMatchObject({
        architecture: target.debian,
        config: {
          User: "65532:65532",
          ExposedPorts: { "4100/tcp": {} },
          Env: ["PATH=/usr/bin", "HOST=0.0.0.0", "PORT=4100", "KEYHOLE_DATA=/data"],
          Volumes: { "/data": {} },
          Healthcheck: { Test: ["CMD", "/usr/bin/keyhole", "health"], Interval: 10e9, Timeout: 3e9 },
        },
      });
      expect(process_).toMatchObject({ args: ["/usr/bin/keyhole", "serve"], user: { uid: 65532, gid: 65532 } });
    });

    whereInstalled(["docker-registry", "skopeo"], "an image in a registry", (registry, skopeo) => {
      test("is there by the digest that the chart names", async () => {
        const address = `127.0.0.1:${freePort()}`;
        const config = `{ version: 0.1, http: { addr: "${address}" }, storage: { filesystem: { rootdirectory: ${at("registry")} } } }`;
        writeFileSync(at("registry.yaml"), config);
        const server = Bun.spawn([registry, "serve", at("registry.yaml")], { stdout: "ignore", stderr: "ignore" });
        try {
          await eventually(() =>
            fetch(`http://${address}/v2/`).then(
              ({ ok }) => ok,
              () => false,
            ),
          );
          const push = [join(root, ".ci/push-image"), `${address}/keyhole`, release, "--dest-tls-verify=false"];
          const pushed = (await done(push, { env: { HOME: folder } })).trim().split("\n").at(-1);
          const index = readFileSync(artefact(`keyhole-${version}-oci-index.json`));
          expect(pushed).toBe(`${address}/keyhole@sha256:${sha256(index)}`);
          const inspect = async (...words: string[]) =>
            done([skopeo, "inspect", "--tls-verify=false", ...words, `docker://${pushed}`], { env: { HOME: folder } });
          expect(await inspect("--raw")).toBe(index.toString());
          expect(JSON.parse(await inspect("--config")).config.Entrypoint).toEqual(["/usr/bin/keyhole"]);
        } finally {
          server.kill();
          await server.exited;
        }
      });
    });

    test("holds the program and no other", () => {
      expect(readdirSync(join(rootfs, "usr/bin"))).toEqual(["keyhole"]);
      expect(existsSync(join(rootfs, "bin"))).toBe(false);
    });

    test("serves, and its health check passes while it does", async () => {
      const streams = { stdin: "ignore", stdout: "ignore", stderr: "pipe" } as const;
      const server = Bun.spawn(inside(...process_.args), { env: {}, ...streams });
      try {
        const health = () => run(inside("/usr/bin/keyhole", "health"), {});
        expect(await eventually(async () => (await health()).exitCode === 0)).toBe(true);
        expect(existsSync(join(rootfs, "data/keyhole.db"))).toBe(true);
      } finally {
        server.kill("SIGKILL");
        await server.exited;
      }
    });
  });
});

/** How a file of the release can be checked. */
function acceptedBy(file: string): string[] {
  if (file === "SHA256SUMS") return ["minisign"];
  if (/^apt\/dists\/stable\/Release(\.gpg)?$/.test(file)) return ["gpg"];
  if (file === "apt/keyhole.asc") return ["minisign"];
  return file.includes("/") ? ["sha256sum"] : ["minisign", "sha256sum", "keyhole"];
}

/** Changes one byte in the middle of a file. Returns what changes it back. */
function flip(file: string): () => void {
  const open = openSync(file, "r+");
  const at = Math.floor(fstatSync(open).size / 2);
  const byte = Buffer.alloc(1);
  readSync(open, byte, 0, 1, at);
  writeSync(open, Buffer.of((byte[0] ?? 0) ^ 1), 0, 1, at);
  return () => {
    writeSync(open, byte, 0, 1, at);
    closeSync(open);
  };
}

/** The files in a folder and in those below it, by their paths. */
function filesIn(folder: string): string[] {
  const all = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return all.filter((file) => statSync(join(folder, file)).isFile()).sort();
}

/**
 * Runs the first installation of docs/start.md in an empty home, with a program from a package in place of the one that
 * it builds. Returns how often the lines after it read the secret.
 */
async function firstSecret(program: string): Promise<number> {
  const home = newFolder();
  const bin = makeBin(home);
  symlinkSync(program, join(bin, "keyhole"));
  const env = { HOME: home, PATH: bin, PORT: String(freePort()) };
  const lines = blocksOf("docs/start.md")
    .filter((block) => isRun("docs/start.md", block) && !/^(keyhole dashboard|kill)/.test(block.text))
    .map(({ text }) => adapt(text, { folder: home, env }));
  const script = `set -e\ntrap 'kill $(jobs -p)' EXIT\n${lines.join("\n")}`;
  return (await done(["bash", "-c", script], { cwd: home, env })).match(/shop:made-up/g)?.length ?? 0;
}

/** Runs a program to its end, with PATH. */
function run(command: readonly string[], { cwd = tmpdir(), env, ...stdin }: ProgramOptions): Promise<Ran> {
  return runProgram(command, { cwd, env: { PATH: process.env["PATH"], ...env }, ...stdin });
}

/** Returns its stdout. @throws Error with all that it printed, if it failed */
function done(command: readonly string[], { cwd = tmpdir(), env, ...stdin }: ProgramOptions): Promise<string> {
  return outputOf(command, { cwd, env: { PATH: process.env["PATH"], ...env }, ...stdin });
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

type Registry = { readonly origin: string; readonly downloads: readonly string[]; readonly stop: () => Promise<void> };

/** An npm registry of this release. Programs for other machines are listed there, too, but cannot be downloaded. */
async function serveRegistry(release: string): Promise<Registry> {
  const downloads: string[] = [];
  const files = new Map<string, string>([["keyhole", `keyhole-${version}.tgz`]]);
  const manifests = new Map<string, object>();
  for (const { name, os, cpu, libc } of targets) {
    files.set(`@keyhole/${name}`, `keyhole-${name}-${version}.tgz`);
    const own = { version, os: [os], cpu: [cpu], libc: libc && [libc] };
    manifests.set(`@keyhole/${name}`, { name: `@keyhole/${name}`, ...own });
  }
  for (const [name, file] of files) {
    if (!existsSync(join(release, file))) continue;
    const read = ["tar", "--extract", "--gzip", "--to-stdout", "--file", join(release, file), "package/package.json"];
    manifests.set(name, JSON.parse(await done(read, {})));
  }
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      const { origin, pathname } = new URL(url);
      const path = decodeURIComponent(pathname.slice(1));
      if (path.startsWith("tarballs/")) {
        downloads.push(path.slice("tarballs/".length));
        return new Response(Bun.file(join(release, path.slice("tarballs/".length))));
      }
      const manifest = manifests.get(path);
      if (manifest === undefined) return new Response(undefined, { status: 404 });
      const dist = { tarball: `${origin}/tarballs/${files.get(path)}` };
      const versions = { [version]: { ...manifest, dist } };
      return Response.json({ name: path, "dist-tags": { latest: version }, versions });
    },
  });
  return { origin: server.url.origin, downloads, stop: () => server.stop(true) };
}
