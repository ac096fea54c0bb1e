import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { dirname, join } from "node:path";
import { makeCertificates } from "../support/certificates.ts";
import { newFolder } from "../support/folder.ts";
import { runBinary } from "../support/keyhole.ts";
import { clusterOwner, connectTo, type Postgres, runOn, startPostgres } from "../support/postgres.ts";
import type { Ran } from "../support/program.ts";
import { withPrograms } from "../support/programs.ts";

const rootKey = Buffer.alloc(32, 7).toString("base64");
const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));

/** DATABASE_URL against a PostgreSQL with TLS, a socket, and a certificate for addresses and for no name. */
withPrograms(["openssl"], "a DATABASE_URL as libpq takes it", (openssl) => {
  let folder: string;
  let cluster: Postgres;
  let password: string;
  let port: string;
  beforeAll(async () => {
    folder = newFolder();
    makeCertificates(openssl ?? "", folder, "IP:127.0.0.1,IP:::1");
    const sockets = join(folder, "sockets");
    mkdirSync(sockets);
    const { ids } = clusterOwner() ?? {};
    for (const path of [sockets, join(folder, "keyhole.key")]) if (ids) chownSync(path, ids.uid, ids.gid);
    chmodSync(folder, 0o755);
    const files = ["ssl=on", `ssl_cert_file=${folder}/keyhole.crt`, `ssl_key_file=${folder}/keyhole.key`];
    const addresses = [`listen_addresses=127.0.0.1${hasIpv6 ? ",::1" : ""}`, `unix_socket_directories=${sockets}`];
    const settings = [...files, `ssl_ca_file=${folder}/ca.crt`, ...addresses, "log_connections=on"];
    cluster = (await startPostgres(undefined, settings)) as Postgres;
    ({ password, port } = new URL(cluster.url));
    const begun = await keyhole(["org", "create", "acme"], `postgres://keyhole:${password}@127.0.0.1:${port}/postgres`);
    expect(begun).toMatchObject({ exitCode: 0 });
  });
  afterAll(() => cluster?.stop());

  /** HOME has no password file. */
  const keyhole = (args: readonly string[], url: string, env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
    runBinary(args, { cwd: folder, env: { HOME: folder, DATABASE_URL: url, KEYHOLE_ROOT_KEY: rootKey, ...env } });
  const urlOf = (query: string, host = "127.0.0.1") =>
    `postgres://keyhole:${password}@${host}:${port}/postgres${query && `?${query}`}`;
  const log = () => readFileSync(join(dirname(cluster.pgdata ?? ""), "postgres.log"), "utf8");
  /** Whether the connections of a command that lists the organizations are encrypted. */
  async function listed(url: string, env: Readonly<Record<string, string>> = {}): Promise<"TLS" | "plain"> {
    const before = log().length;
    const ran = await keyhole(["org", "list"], url, env);
    expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
    expect(ran.stdout).toContain("acme");
    const made =
      log()
        .slice(before)
        .match(/connection authorized: .*/g) ?? [];
    expect(made.length).toBeGreaterThan(0);
    const encrypted = made.filter((line) => line.includes("SSL enabled"));
    expect([0, made.length]).toContain(encrypted.length);
    return encrypted.length > 0 ? "TLS" : "plain";
  }
  /** The sentence that a command ends with, and how much PostgreSQL heard of it. */
  async function refused(url: string, env: Readonly<Record<string, string>> = {}) {
    const before = log().length;
    const { exitCode, stdout, stderr } = await keyhole(["org", "list"], url, env);
    expect([stdout, stderr.includes(password)]).toEqual(["", false]);
    return { exitCode, said: stderr.replace("keyhole: ", "").trimEnd(), heard: log().slice(before) };
  }

  describe("is encrypted", () => {
    test("as sslmode says", async () => {
      const root = `sslrootcert=${folder}/ca.crt`;
      expect(await listed(urlOf(""))).toBe("plain"); // this machine
      expect(await listed(urlOf("sslmode=disable"))).toBe("plain");
      for (const mode of ["allow", "prefer", "require"]) expect(await listed(urlOf(`sslmode=${mode}`))).toBe("TLS");
      for (const mode of ["require", "verify-ca", "verify-full"]) {
        expect(await listed(urlOf(`sslmode=${mode}&${root}`))).toBe("TLS");
      }
      expect(await listed(urlOf(""), { PGSSLMODE: "verify-ca", PGSSLROOTCERT: `${folder}/ca.crt` })).toBe("TLS");
    });

    test("and the certificate verified, whatever the environment turns off", async () => {
      const doubts = `127.0.0.1:${port} has a certificate that comes from an unknown authority (sslrootcert=FILE may name a file with yours).`;
      const unknown = ["sslmode=verify-full", "sslmode=verify-ca", "sslrootcert=system"];
      // As Neon hands it out.
      for (const query of [...unknown, "sslmode=require&channel_binding=require"]) {
        const { exitCode, said, heard } = await refused(urlOf(query), { NODE_TLS_REJECT_UNAUTHORIZED: "0" });
        expect([query, exitCode, said]).toEqual([query, 6, expect.stringContaining(`DATABASE_URL: ${doubts}`)]);
        expect(heard).not.toContain("authorized");
      }
      expect(await listed(urlOf(`sslmode=require&channel_binding=require&sslrootcert=${folder}/ca.crt`))).toBe("TLS");
      expect(await listed(urlOf("sslmode=verify-full"), { NODE_EXTRA_CA_CERTS: `${folder}/ca.crt` })).toBe("TLS");
    });

    test("for the host that is asked, and for no other", async () => {
      const root = `sslrootcert=${folder}/ca.crt`;
      const { exitCode, said } = await refused(urlOf(`sslmode=verify-full&${root}`, "localhost"));
      expect(exitCode).toBe(6);
      expect(said).toBe(
        `DATABASE_URL: localhost:${port} has a certificate that belongs to another host: write the host in DATABASE_URL as the certificate does.`,
      );
      expect(await listed(urlOf(`sslmode=verify-ca&${root}`, "localhost"))).toBe("TLS");
    });

    test("with a certificate of our own, which the server judges", async () => {
      const own = (name: string) =>
        `sslmode=verify-full&sslrootcert=${folder}/ca.crt&sslcert=${folder}/${name}.crt&sslkey=${folder}/${name}.key`;
      expect(await listed(urlOf(own("client")))).toBe("TLS");
      expect((await refused(urlOf(own("stranger")))).exitCode).toBe(6);
    });

    test("never less than it should be, because a word was misspelt", async () => {
      const words = ["sslMode=require", "sslmode=REQUIRE", "sslmode=", "sslmode=verify_full", "ssl=true"];
      for (const word of [...words, "sslmode=require&sslmode=disable", `sslrootcert=${folder}/ca.crt`]) {
        const { exitCode, said, heard } = await refused(urlOf(word));
        expect([word, exitCode, heard.includes("connection received")]).toEqual([word, 2, false]);
        expect(said).toMatch(/^(?:DATABASE_URL has |sslrootcert needs )/);
      }
    });
  });

  describe.skipIf(!hasIpv6)("reaches an IPv6 address", () => {
    test.each(["[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]"])("%s", async (host) => {
      expect(await listed(urlOf("sslmode=disable", host))).toBe("plain");
    });

    test("as the second of several hosts, and by its certificate", async () => {
      expect(await listed(`postgres://keyhole:${password}@127.0.0.1:1,[::1]:${port}/postgres`)).toBe("plain");
      expect(await listed(urlOf(`sslmode=verify-full&sslrootcert=${folder}/ca.crt`, "[::1]"))).toBe("TLS");
    });
  });

  test("reaches a socket", async () => {
    const sockets = join(folder, "sockets");
    expect(await listed(`postgres://keyhole:${password}@/postgres?host=${sockets}&port=${port}`)).toBe("plain");
    const url = `postgres://keyhole:${password}@${encodeURIComponent(sockets)}:${port}/postgres`;
    expect(await listed(url)).toBe("plain");
    const { exitCode, said } = await refused(`postgres://keyhole@/postgres?host=${sockets}&port=1`);
    expect(exitCode).toBe(6);
    expect(said).toStartWith(`DATABASE_URL: ${sockets}/.s.PGSQL.1 is not there: `);
  });

  describe("gets its password", () => {
    const bare = () => `postgres://keyhole@127.0.0.1:${port}/postgres`;

    test("from a file, with a warning if others may read it", async () => {
      const file = join(folder, "password");
      writeFileSync(file, `${password}\n`, { mode: 0o600 });
      const env = { DATABASE_PASSWORD_FILE: file };
      expect(await listed(bare(), env)).toBe("plain");
      chmodSync(file, 0o644);
      expect((await keyhole(["org", "list"], bare(), env)).stderr).toBe(
        `WARNING: The secret file, ${file}, can be read by other users (mode 0644): chmod 600 ${file}\n`,
      );
    });

    test("from PGPASSWORD, .pgpass or the file that PGPASSFILE names", async () => {
      expect(await listed(bare(), { PGPASSWORD: password })).toBe("plain");
      const home = mkdtempSync(join(folder, "home-"));
      writeFileSync(join(home, ".pgpass"), `127.0.0.1:${port}:*:keyhole:${password}\n`, { mode: 0o600 });
      expect(await listed(bare(), { HOME: home })).toBe("plain");
      expect(await listed(bare(), { PGPASSFILE: join(home, ".pgpass") })).toBe("plain");
      const sentence = `DATABASE_URL: 127.0.0.1:${port} refuses the user or the password`;
      expect((await refused(bare())).said).toStartWith(sentence);
    });
  });

  describe("that PostgreSQL refuses is answered with what it lacks:", () => {
    const at = (user: string, database = "postgres", query = "") =>
      `postgres://${user}:x@127.0.0.1:${port}/${database}${query}`;
    beforeAll(async () => {
      const sql = connectTo(cluster.url);
      await sql.unsafe("create role crowded login password 'x' connection limit 0");
      await sql.unsafe("create role stranger login password 'x'");
      await sql.unsafe("create database closed encoding 'UTF8' template template0");
      await sql.unsafe("revoke connect on database closed from public");
      await sql.end({ timeout: 5 });
    });

    test.each([
      ["a connection", () => at("crowded"), "has no free connection: raise max_connections or the limit of the role"],
      ["the right to connect", () => at("stranger", "closed"), "refuses the user, who lacks a right in the database"],
      [
        "a setting that it knows",
        () => at("stranger", "postgres", "?options=-c%20no.such%3D1%20-c%20no_such%3D1"),
        "refuses (42704): its log says why.",
      ],
    ])("%s", async (_, url, words) => {
      const { exitCode, said } = await refused(url());
      expect([exitCode, said.slice(0, 200)]).toEqual([6, expect.stringContaining(`127.0.0.1:${port} ${words}`)]);
    });

    test.each([
      ["LATIN1", "create database NAME encoding 'LATIN1' locale 'C' template template0"],
      ["SQL_ASCII", "create database NAME encoding 'SQL_ASCII' locale 'C' template template0"],
    ])("an encoding that holds every character: %s", async (encoding, statement) => {
      const name = encoding.toLowerCase();
      await runOn(cluster.url, statement.replace("NAME", name));
      const url = urlOf("").replace(/postgres$/, name);
      for (const args of [
        ["org", "create", "acme"],
        ["serve", "--port", "0"],
      ]) {
        const { exitCode, stderr } = await keyhole(args, url);
        expect([exitCode, stderr]).toEqual([
          2,
          `keyhole: The database of DATABASE_URL has the encoding ${encoding}, and Keyhole needs UTF8: create database NAME encoding 'UTF8' locale 'C' template template0.\n`,
        ]);
        const [, remedy = ""] = /: (create database NAME .*)\./.exec(stderr) ?? [];
        await runOn(cluster.url, remedy.replace("NAME", `${name}_${args[0]}`));
      }
      expect(await runOn(url, "select 1 from pg_tables where tablename = 'organizations'")).toEqual([]);
    });
  });
});
