import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { $ } from "bun";
import type { Source } from "./archive.ts";

/**
 * Whoever installs the package still has to make a root key, so nothing is enabled or started. An upgrade does not
 * restart the server: docs/upgrade.md says what comes before that.
 */
const ifSystemd = 'if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then';
const scripts = {
  postinst: `${ifSystemd} systemctl daemon-reload; fi`,
  prerm: `if [ "$1" = remove ]; then ${ifSystemd} systemctl disable --now keyhole.service; fi; fi`,
  postrm: `${ifSystemd} systemctl daemon-reload; fi`,
};

/** Builds the Debian package of a program, with the systemd unit of docs/deploy. */
export async function packDeb(
  folder: string,
  program: string,
  architecture: string,
  { version, description, license, madeAt, maintainer }: Source,
  scratch: string,
): Promise<void> {
  const place = join(scratch, `deb-${architecture}`);
  const write = (path: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(place, path)), { recursive: true, mode: 0o755 });
    writeFileSync(join(place, path), text, { mode });
  };
  // `~` sorts before nothing, so 1.0.0~rc.1 is older than 1.0.0.
  const debian = version.replace("-", "~");
  const control = {
    Package: "keyhole",
    Version: debian,
    Architecture: architecture,
    Maintainer: maintainer,
    "Installed-Size": Math.ceil(Bun.file(program).size / 1024),
    // The newest symbol that the runtime asks for.
    Depends: "libc6 (>= 2.17)",
    Section: "admin",
    Priority: "optional",
    Description: `secrets for machines\n ${description}`,
  };
  write(
    "DEBIAN/control",
    Object.entries(control)
      .map(([name, value]) => `${name}: ${value}\n`)
      .join(""),
  );
  write("DEBIAN/conffiles", "/etc/keyhole/keyhole.env\n");
  for (const [name, text] of Object.entries(scripts)) write(`DEBIAN/${name}`, `#!/bin/sh\nset -e\n${text}\n`, 0o755);

  mkdirSync(join(place, "usr/bin"), { recursive: true });
  cpSync(program, join(place, "usr/bin/keyhole"));
  const unit = readFileSync("docs/deploy/keyhole.service", "utf8").replaceAll("/usr/local/bin/", "/usr/bin/");
  write("usr/lib/systemd/system/keyhole.service", unit);
  write(
    "etc/keyhole/keyhole.env",
    "# Settings of keyhole.service, one NAME=value a line.\n#DATABASE_URL=postgres://\n",
    0o600,
  );
  write("usr/share/doc/keyhole/copyright", `License: ${license}\n\n${readFileSync("LICENSE", "utf8")}`);
  write("usr/share/doc/keyhole/CHANGELOG.md", readFileSync("CHANGELOG.md", "utf8"));
  await $`chmod -R u=rwX,go=rX ${["usr", "DEBIAN"].map((name) => join(place, name))}`;
  await $`chmod 755 ${join(place, "usr/bin/keyhole")}`;

  const file = join(folder, `keyhole_${debian}_${architecture}.deb`);
  await $`dpkg-deb --root-owner-group -Zzstd --build ${place} ${file}`
    .env({ ...process.env, SOURCE_DATE_EPOCH: String(madeAt) })
    .quiet();
}
