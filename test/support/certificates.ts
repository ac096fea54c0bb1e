import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Makes an authority that nobody else knows, ca.crt, and signed by it keyhole.crt and client.crt for these names;
 * stranger.crt signs itself. Their keys end in .key.
 */
export function makeCertificates(openssl: string, folder: string, names: string): void {
  const run = (...args: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync([openssl, ...args], { cwd: folder });
    if (exitCode !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`);
  };
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const self = (name: string) =>
    run("req", "-x509", ...newKey, "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.crt`);
  self("ca");
  self("stranger");
  writeFileSync(join(folder, "names"), `subjectAltName=${names}\n`);
  for (const name of ["keyhole", "client"]) {
    run("req", ...newKey.slice(0, 5), "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", "request");
    const signing = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"];
    run("x509", "-req", "-in", "request", ...signing, "-out", `${name}.crt`);
  }
  for (const name of ["keyhole", "client", "stranger"]) chmodSync(join(folder, `${name}.key`), 0o600);
}

/**
 * Makes root.crt, and certificates that are no good although it stands behind them, for localhost: cut.crt without the
 * intermediate one that signed it, old.crt and young.crt, and other.crt, which is for another host. All have leaf.key.
 */
export function makeBadCertificates(openssl: string, folder: string): void {
  const run = (...args: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync([openssl, ...args], { cwd: folder });
    if (exitCode !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`);
  };
  const write = (name: string, ...lines: string[]) => writeFileSync(join(folder, name), `${lines.join("\n")}\n`);
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const authority = ["[ca]", "default_ca=own", "[own]", "database=index", "new_certs_dir=.", "rand_serial=yes"];
  write(
    "ca.conf",
    ...authority,
    "policy=any",
    "default_md=sha256",
    "unique_subject=no",
    "[any]",
    "commonName=supplied",
  );
  write("intermediate.ext", "basicConstraints=critical,CA:true");
  write("localhost.ext", "subjectAltName=DNS:localhost");
  write("other.ext", "subjectAltName=DNS:elsewhere.example");
  writeFileSync(join(folder, "index"), "");
  run("req", "-x509", ...newKey, "-days", "9000", "-subj", "/CN=root", "-keyout", "root.key", "-out", "root.crt");
  for (const name of ["intermediate", "leaf"]) {
    run("req", ...newKey, "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.request`);
  }
  const sign = (name: string, request: string, by: string, names: string, [from, to] = ["20200101", "20400101"]) => {
    const dates = ["-startdate", `${from}000000Z`, "-enddate", `${to}000000Z`];
    const signer = ["-cert", `${by}.crt`, "-keyfile", `${by}.key`, "-extfile", `${names}.ext`];
    run("ca", "-batch", "-config", "ca.conf", ...signer, ...dates, "-in", `${request}.request`, "-out", `${name}.crt`);
  };
  sign("intermediate", "intermediate", "root", "intermediate");
  sign("cut", "leaf", "intermediate", "localhost");
  sign("old", "leaf", "root", "localhost", ["20200101", "20200201"]);
  sign("young", "leaf", "root", "localhost", ["20400101", "20400201"]);
  sign("other", "leaf", "root", "other");
}
