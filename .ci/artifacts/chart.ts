import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { publisher } from "../../package.json";
import { gzip, type Source, tar } from "./archive.ts";

/** Packs the Helm chart of docs/deploy/chart, with the version of the release and the digest of its image. */
export async function packChart(folder: string, image: string, source: Source, scratch: string): Promise<void> {
  const { version } = source;
  const place = join(scratch, "chart");
  cpSync("docs/deploy/chart", join(place, "keyhole"), { recursive: true });
  await $`chmod -R u=rwX,go=rX ${place}`;
  put(join(place, "keyhole/Chart.yaml"), { version, appVersion: version });
  put(join(place, "keyhole/values.yaml"), { "  repository": publisher.image, "  digest": image });
  await Bun.write(join(folder, `keyhole-chart-${version}.tgz`), gzip(await tar(place, ["keyhole"], source)));
}

/** Puts values into lines of a YAML file that are there. */
function put(file: string, values: Readonly<Record<string, string>>): void {
  let text = readFileSync(file, "utf8");
  for (const [name, value] of Object.entries(values)) {
    const line = new RegExp(`^${name}: .*$`, "m");
    if (!line.test(text)) throw new Error(`${file} has no line with ${name.trim()}.`);
    text = text.replace(line, `${name}: ${JSON.stringify(value)}`);
  }
  writeFileSync(file, text);
}
