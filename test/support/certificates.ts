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
