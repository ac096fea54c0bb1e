import { describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parsePostgresUrl } from "../../src/core/settings/postgres-url.ts";
import { readConfig } from "../../src/core/settings/settings.ts";
import { newFolder } from "../support/folder.ts";

const folder = newFolder();
/** Nobody's password file is read here. */
const home = { HOME: folder };
const serversOf = (url: string, env = {}) => parsePostgresUrl(url, { ...home, ...env }).servers;
const first = (url: string, env = {}) => serversOf(url, env)[0]?.connect;
const refusal = (url: string, env = {}) => {
  try {
    readConfig({ ...home, DATABASE_URL: url, KEYHOLE_ROOT_KEY: "x", ...env });
    return "it is taken";
  } catch (error) {
    expect(error).toMatchObject({ name: "Problem", exitCode: 2 });
    const { message } = error as Error;
    expect(message).not.toContain("s3cret");
    return message;
  }
};
const form =
  "DATABASE_URL must be a URL of the form postgres://user:password@host:5432/database; percent-encode % @ / ? # in the password (%25 %40 %2F %3F %23).";

describe("DATABASE_URL names", () => {
  test.each([
    ["postgres://u:p@h1:5432,h2:5433/db", "h1:5432 h2:5433"],
    ["postgresql://u@h1,[::1]:5433/db", "h1:5432 [::1]:5433"],
    ["POSTGRES://u@h/db", "h:5432"],
    ["postgres://u:p,q@h1/db", "h1:5432"],
    ["postgres://u@[::ffff:127.0.0.1]/db", "[::ffff:127.0.0.1]:5432"],
    ["postgres://u@[0:0:0:0:0:0:0:1]:1/db", "[0:0:0:0:0:0:0:1]:1"],
    ["postgres://u@[fe80::1%25eth0]/db", "[fe80::1%eth0]:5432"],
    ["postgres://u@/db", "localhost:5432"],
    ["postgres:///db?host=h1,h2&port=1,2", "h1:1 h2:2"],
    ["postgres://u@h1,h2/db?port=1", "h1:1 h2:1"],
    ["postgres:///db?host=::1&port=5433", "[::1]:5433"],
    // Sockets.
    ["postgres://u@/db?host=/run/postgresql", "/run/postgresql/.s.PGSQL.5432"],
    ["postgres:///db?host=/run/pg&port=4971", "/run/pg/.s.PGSQL.4971"],
    ["postgres://u@%2Frun%2Fpg:4971/db", "/run/pg/.s.PGSQL.4971"],
  ])("in %s the servers %s", (url, names) => {
    const servers = serversOf(url);
    expect(servers.map(({ name }) => name).join(" ")).toBe(names);
    for (const { name, connect } of servers) expect(connect.path).toBe(name.startsWith("/") ? name : undefined);
  });

  test("addresses without brackets, as the system takes them", () => {
    expect(first("postgres://u@[::1]:5433/db")).toMatchObject({ host: ["::1"], port: [5433] });
  });

  test("user, password and database, percent-encoded, and takes from the environment what it leaves out", () => {
    const encoded = "postgres://%C3%A9:a%40%2F%23%3F%25b@h/d%2Fb";
    expect(first(encoded)).toMatchObject({ user: "é", pass: "a@/#?%b", database: "d/b" });
    expect(first("postgres://u:a@b@h/db")).toMatchObject({ user: "u", pass: "a@b" });
    const env = { PGUSER: "pu", PGPASSWORD: "pp", PGDATABASE: "pd", PGHOST: "ph", PGPORT: "1" };
    const given = { user: "pu", pass: "pp", database: "pd", host: ["ph"], port: [1] };
    expect(first("postgres://", env)).toMatchObject(given);
    const own = { user: "u", pass: "p", database: "d", host: ["h"], port: [2] };
    expect(first("postgres://u:p@h:2/d", env)).toMatchObject(own);
    expect(first("postgres://u@h")).toMatchObject({ database: "u" });
  });
});

test.each([
  // A password that is not encoded, or not well.
  ...["postgres://u:12/s3cret@h:5432/db", "postgres://u:12#s3cret@h:5432/db", "postgres://u:12?s3cret@h:5432/db"],
  ...["postgres://u:12?sslmode=s3cret@h:5432/db", "postgres://u:a#s3cret@h1:5432,h2:5432/db"],
  ...["postgres://u:100%zzs3cret@h/db", "postgres://u:s3cret%@h1,h2/db", "postgres://u:s3cret%ff@h/db"],
  ...["postgres://u%00database%00x:s3cret@h/db", "postgres://%zz@h/db", "postgres://u@h/%zz"],
  "postgres://u@h/db?options=%zz",
  // No URL of PostgreSQL.
  ...["postgres://h1,/db", "postgres://h1:port,h2/db", "postgres://u@::1/db", "postgres://u@[h]/db"],
  ...["postgres://u@[::1/db", "postgres://u@h b/db", "postgres:///db?host=", "mysql://h1,h2/db", "h1,h2"],
  "host=h dbname=db",
])("%s is refused with the form that a URL has", (url) => {
  const said = refusal(url);
  expect(said).toBe(url.endsWith("host=") ? "DATABASE_URL has host=: it is empty." : form);
});

describe("a parameter of DATABASE_URL", () => {
  test.each([
    // Prisma, JDBC, node-postgres, libpq's rarer ones.
    ...["schema=public", "pgbouncer=true", "connection_limit=5", "pool_timeout=0", "uselibpqcompat=true"],
    ...["service=x", "requirepeer=x", "require_auth=none", "search_path=x", "password=s3cret", "user=x", "max=1"],
  ])("that Keyhole does not know is refused by name: %s", (parameter) => {
    const name = parameter.split("=")[0];
    const said = `DATABASE_URL has the parameter ${name}, which Keyhole does not know: leave it out.`;
    expect(refusal(`postgres://u@h/db?${parameter}`)).toBe(said);
    expect(refusal(`postgres://u@h/db?sslmode=require&${parameter}`)).toBe(said);
  });

  const names = ["sslMode", "SSLMODE", "ssl", "sslcrl", "ssl_min_protocol_version", "tls", "sslpassword"];
  test.each(names)("about TLS that Keyhole does not know is not to be left out: %s", (name) => {
    expect(refusal(`postgres://u@h/db?${name}=require`)).toBe(
      `DATABASE_URL has the parameter ${name}, which Keyhole does not know: ask for TLS with sslmode=verify-full or sslmode=require.`,
    );
  });

  test("is not shown if it may be a piece of a password", () => {
    expect(refusal("postgres://u:p@h/db?s3cret%20=1")).toBe(
      "DATABASE_URL has a parameter, which Keyhole does not know: leave it out.",
    );
  });

  test("may not be given twice", () => {
    expect(refusal("postgres://u@h/db?sslmode=require&sslmode=disable")).toBe(
      "DATABASE_URL has the parameter sslmode twice: leave one out.",
    );
    expect(refusal("postgres://u@h1/db?host=h2")).toBe(
      "DATABASE_URL has the parameter host beside another host: keep one of them.",
    );
    for (const hosts of ["h:5433", "[::1]:5433", "h1:5433,h2", "h1,h2:5433"]) {
      expect(refusal(`postgres://u@${hosts}/db?sslmode=require&port=5432`)).toBe(
        "DATABASE_URL has the parameter port beside another port: keep one of them.",
      );
    }
  });

  test.each([
    ["sslmode", ["", "REQUIRE", "Require", "verify_full", "on", "true", "no"]],
    ["channel_binding", ["", "REQUIRE", "on"]],
    ["gssencmode", ["require"]],
    ["sslnegotiation", ["direct"]],
    ["target_session_attrs", ["standby", "prefer-standby", "read-only"]],
  ])("with a value that it cannot have is refused with its name: %s", (name, values) => {
    for (const value of values) {
      expect(refusal(`postgres://u@h/db?${name}=${value}`)).toStartWith(
        `DATABASE_URL has ${name}=${value}: it must be `,
      );
    }
    expect(refusal(`postgres://u@h/db?${name}=a%20s3cret`)).toStartWith(`DATABASE_URL has ${name}=…: it must be `);
  });

  test("of libpq that has nothing to do here is taken without effect", () => {
    const plain = first("postgres://u@h/db");
    const idle = "connect_timeout=10&keepalives=1&keepalives_idle=30&tcp_user_timeout=1&application_name=x";
    const same = "gssencmode=prefer&sslnegotiation=postgres&target_session_attrs=read-write&channel_binding=prefer";
    expect(first(`postgres://u@h/db?${idle}&${same}`)).toEqual(plain);
    expect(first("postgres://u@h/db?options=-c%20search_path%3Dx")?.connection).toEqual({
      options: "-c search_path=x",
    });
  });

  test("of several ports is of one host each", () => {
    for (const [url, words] of [
      ["postgres://u@h1,h2,h3/db?port=1,2", "3 hosts and 2 ports"],
      ["postgres:///db?host=h1,h2&port=1,2,3", "2 hosts and 3 ports"],
    ] as const) {
      expect(refusal(url)).toBe(`DATABASE_URL has ${words}: give one port, or each host its own.`);
    }
  });

  test("that is a port is a number", () => {
    for (const url of ["postgres://u@h:0/db", "postgres://u@h:65536/db", "postgres:///db?host=h&port=x"]) {
      expect(refusal(url)).toBe("DATABASE_URL has a port that is not a number from 1 to 65535.");
    }
  });
});

describe("TLS to PostgreSQL", () => {
  const root = join(folder, "root.crt");
  writeFileSync(root, "not read, because of what is wrong before");

  test.each([
    ["sslmode=disable", false],
    ["sslmode=allow", "prefer"],
    ["sslmode=prefer", "prefer"],
    ["sslmode=require", { rejectUnauthorized: false }],
    ["sslmode=verify-ca", { rejectUnauthorized: true, checkServerIdentity: expect.any(Function) }],
    ["sslmode=verify-full", { rejectUnauthorized: true }],
    ["sslrootcert=system", { rejectUnauthorized: true, ca: expect.any(Array) }],
    ["sslmode=require&sslrootcert=system", { rejectUnauthorized: true, ca: expect.any(Array) }],
    // As Neon hands it out: what the driver cannot do is made up for, and never dropped.
    ["sslmode=require&channel_binding=require", { rejectUnauthorized: true }],
    ["sslmode=disable&channel_binding=require", { rejectUnauthorized: true }],
    ["channel_binding=require", { rejectUnauthorized: true }],
    ["sslmode=require&channel_binding=prefer", { rejectUnauthorized: false }],
  ])("is as %s says", (query, ssl) => {
    for (const host of ["h", "127.0.0.1"]) expect(first(`postgres://u@${host}/db?${query}`)?.ssl).toEqual(ssl as never);
  });

  test("is used where it is offered, if nobody says otherwise, except on the way to this machine", () => {
    for (const host of ["h", "10.0.0.1", "[2001:db8::1]", "localhost.example.com"]) {
      expect(first(`postgres://u@${host}/db`)?.ssl).toBe("prefer");
    }
    for (const host of ["localhost", "127.0.0.1", "[::1]"]) expect(first(`postgres://u@${host}/db`)?.ssl).toBe(false);
  });

  test("is as the environment says, if the URL says nothing", () => {
    const full = { rejectUnauthorized: true };
    expect(first("postgres://u@h/db", { PGSSLMODE: "verify-full" })?.ssl).toEqual(full);
    expect(first("postgres://u@h/db", { PGCHANNELBINDING: "require" })?.ssl).toEqual(full);
    expect(first("postgres://u@h/db?sslmode=disable", { PGSSLMODE: "verify-full" })?.ssl).toBe(false);
    expect(refusal("postgres://u@h/db", { PGSSLMODE: "REQUIRE" })).toStartWith(
      "The environment has PGSSLMODE=REQUIRE: ",
    );
    expect(refusal("postgres://u@h/db", { PGSSLMODE: "" })).toStartWith("The environment has PGSSLMODE=: it must be ");
    expect(refusal("postgres://u@h/db", { PGTARGETSESSIONATTRS: "standby" })).toStartWith(
      "PGTARGETSESSIONATTRS is set",
    );
  });

  test.each(["sslrootcert", "sslcert", "sslkey"])("is required where %s is named", (name) => {
    for (const mode of ["", "&sslmode=disable", "&sslmode=allow", "&sslmode=prefer"]) {
      expect(refusal(`postgres://u@h/db?${name}=${root}${mode}`)).toBe(
        `${name} needs TLS that is required: add sslmode=verify-full to DATABASE_URL.`,
      );
    }
  });

  test.each([
    ["", true],
    ["sslmode=allow", true],
    ["sslmode=prefer", true],
    ["sslmode=require", true],
    ["sslmode=disable", false],
    ["sslmode=require&sslrootcert=system", false],
    ["sslmode=verify-ca", false],
    ["sslmode=verify-full", false],
    ["sslmode=require&channel_binding=require", false],
  ])("is doubted beyond this machine, if others can pose as the server: %s", (query, isDoubted) => {
    const doubts = (hosts: string) => serversOf(`postgres://u@${hosts}/db?${query}`).map(({ doubt }) => doubt);
    const [other, here] = doubts("db.example.com,127.0.0.1");
    expect(here).toBeUndefined();
    if (!isDoubted) return expect(other).toBeUndefined();
    expect(other).toMatch(/^WARNING: Anybody on the way to db\.example\.com:5432 can pose as .* sslmode=verify-full /);
    expect(other).toContain(`${query || "sslmode=prefer"} asks for`);
  });

  test("takes files that exist and hold what they should", () => {
    const [empty, other] = [join(folder, "empty"), join(folder, "other")];
    writeFileSync(empty, "");
    writeFileSync(other, "no certificate");
    const at = "postgres://u@h/db?sslmode=verify-full";
    expect(refusal(`${at}&sslrootcert=/no/such`)).toBe("The file /no/such of sslrootcert cannot be read (ENOENT).");
    expect(refusal(`${at}&sslrootcert=${empty}`)).toBe(`The file ${empty} of sslrootcert is empty.`);
    expect(refusal(`${at}&sslrootcert=${other}`)).toStartWith(
      "sslrootcert, sslcert and sslkey of DATABASE_URL must name",
    );
    expect(refusal(`${at}&sslcert=${other}`)).toBe("DATABASE_URL needs both sslcert and sslkey, or neither.");
    expect(refusal(`${at}&sslcert=${other}&sslkey=${other}`)).toContain("must name PEM files");
  });
});

describe("the password", () => {
  const file = join(folder, "password");
  writeFileSync(file, "of the file\n");

  test("comes from DATABASE_PASSWORD_FILE, without the line end that tools add", () => {
    const env = { DATABASE_PASSWORD_FILE: file, PGPASSWORD: "not this" };
    expect(first("postgres://u@h/db", env)?.pass).toBe("of the file");
    expect(parsePostgresUrl("postgres://u@h/db", env).secretFiles).toEqual([file]);
  });

  test("has one place", () => {
    const env = { DATABASE_PASSWORD_FILE: file };
    const both = "DATABASE_PASSWORD_FILE is set and DATABASE_URL has a password: keep one of them.";
    expect(refusal("postgres://u:s3cret@h/db", env)).toBe(both);
    expect(() => readConfig(env)).toThrow("DATABASE_PASSWORD_FILE is set without DATABASE_URL");
    expect(refusal("postgres://u@h/db", { DATABASE_PASSWORD_FILE: "" })).toContain(
      "DATABASE_PASSWORD_FILE is set but empty",
    );
    expect(refusal("postgres://u@h/db", { DATABASE_PASSWORD_FILE: "/no/such" })).toBe(
      "The file /no/such of DATABASE_PASSWORD_FILE cannot be read (ENOENT).",
    );
  });

  test("comes from a password file, by host, port, database and user", () => {
    const passfile = join(folder, ".pgpass");
    const lines = ["# h:5432:db:u:comment", "other:*:*:*:1", "h\\:x:*:*:*:2", "h:5433:*:*:3:with\\:colons\\\\"];
    writeFileSync(passfile, [...lines, "::1:*:*:*:4", "\\:\\:1:*:*:*:5", "*:*:db:u:6", "", "short"].join("\n"));
    const rows = [
      ["postgres://u@other/x", "1"],
      ["postgres://u@h:5433/x", "3:with:colons\\"],
      ["postgres://u@[::1]/x", "5"],
      ["postgres://u@h/db", "6"],
      ["postgres://v@h/db", ""],
      ["postgres://u:own@other/x", "own"],
    ] as const;
    for (const [url, pass] of rows) {
      expect([url, first(url)?.pass]).toEqual([url, pass]);
      expect(first(`${url}?passfile=${passfile}`, { HOME: "/no" })?.pass).toBe(pass);
      expect(first(url, { HOME: "/no", PGPASSFILE: passfile })?.pass).toBe(pass);
    }
    const found = serversOf("postgres://u@other,h:5433/x").map(({ connect }) => connect.pass);
    expect(found).toEqual(["1", "3:with:colons\\"]);
    expect(first("postgres://u@other/x", { PGPASSWORD: "of the environment" })?.pass).toBe("of the environment");
    // Each new connection takes what the file holds by then; the last that could be read, if it holds nothing.
    const [server] = serversOf(`postgres://u@other/x?passfile=${passfile}`);
    const pass = (text: string) => {
      writeFileSync(passfile, text);
      return server?.connect.pass;
    };
    expect([server?.connect.pass, pass("*:*:*:*:replaced\n"), pass("")]).toEqual(["1", "replaced", "replaced"]);
    rmSync(passfile);
    expect(refusal("postgres://u@h/db?passfile=/no/such")).toBe(
      "The file /no/such of passfile cannot be read (ENOENT).",
    );
  });
});
