/**
 * An OCI image without Docker: a layout of blobs, as one tar file that `docker load`, `podman load` and
 * `skopeo copy oci-archive:…` take. It has the Dockerfile's configuration, and of Debian only what the program needs to
 * run, libc6. Bun brings its own certificate authorities.
 *
 * @see https://github.com/opencontainers/image-spec/blob/main/image-layout.md
 */
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { gzip, type Source, sha256, tar } from "./archive.ts";

type Layer = { readonly packed: Uint8Array<ArrayBuffer>; readonly diffId: string; readonly from: string };
/** What an image is made of besides the program: a Debian package, by its URL-like name and SHA-256. */
export type DebianPackage = { readonly uri: string; readonly digest: { readonly sha256: string } };

/** An image in an index. */
export type Manifest = {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform: { readonly architecture: string; readonly os: string };
};

const type = "application/vnd.oci.image";
const nonroot = 65532;

/** Packs the image of a program. Returns what an index says of it, and what else is in it. */
export async function packImage(
  folder: string,
  program: string,
  architecture: string,
  source: Source,
  scratch: string,
): Promise<{ readonly manifest: Manifest; readonly libc: DebianPackage }> {
  const place = (name: string) => join(scratch, `oci-${architecture}`, name);
  mkdirSync(place("download"), { recursive: true });
  const libc = await download("libc6", architecture, place("download"));
  await $`dpkg-deb --extract ${libc.file} ${place("base")}`;
  // Where scanners of images look for packages.
  mkdirSync(place("base/var/lib/dpkg/status.d"), { recursive: true });
  writeFileSync(place("base/var/lib/dpkg/status.d/libc6"), await $`dpkg-deb --field ${libc.file}`.text());
  mkdirSync(place("base/etc"), { recursive: true });
  writeFileSync(place("base/etc/passwd"), `root:x:0:0:root:/root:/\nnonroot:x:${nonroot}:${nonroot}::/data:/\n`);
  writeFileSync(place("base/etc/group"), `root:x:0:\nnonroot:x:${nonroot}:\n`);
  writeFileSync(place("base/etc/nsswitch.conf"), "hosts: files dns\n");
  mkdirSync(place("base/tmp"));
  chmodSync(place("base/tmp"), 0o1777);
  mkdirSync(place("program/usr/bin"), { recursive: true });
  cpSync(program, place("program/usr/bin/keyhole"));
  chmodSync(place("program/usr/bin/keyhole"), 0o755);
  mkdirSync(place("data/data"), { recursive: true });
  chmodSync(place("data/data"), 0o700);

  const layer = async (name: string, from: string, owner = 0): Promise<Layer> => {
    const packed = await tar(place(name), readdirSync(place(name)).sort(), source, owner);
    return { packed: gzip(packed), diffId: `sha256:${sha256(packed)}`, from };
  };
  const layers = [
    await layer("base", libc.uri),
    await layer("program", "/usr/bin/keyhole"),
    await layer("data", "/data", nonroot),
  ];
  const manifest = await layOut(place("layout"), architecture, layers, source);
  await Bun.write(
    join(folder, `keyhole-${source.version}-oci-${architecture}.tar`),
    await tar(place("layout"), ["oci-layout", "index.json", "blobs"], source),
  );
  return { manifest, libc: { uri: libc.uri, digest: { sha256: sha256(readFileSync(libc.file)) } } };
}

/** Writes the index of images that a registry has under one name. Returns its digest, which is the name's. */
export function writeIndex(folder: string, manifests: readonly Manifest[], { version }: Source): string {
  const index = JSON.stringify({ schemaVersion: 2, mediaType: `${type}.index.v1+json`, manifests });
  writeFileSync(join(folder, `keyhole-${version}-oci-index.json`), index);
  return `sha256:${sha256(index)}`;
}

/** Writes the layout. Returns what an index says of its image. */
async function layOut(
  folder: string,
  architecture: string,
  layers: readonly Layer[],
  source: Source,
): Promise<Manifest> {
  const { version, commit, license, description, madeAt } = source;
  const created = new Date(madeAt * 1000).toISOString();
  mkdirSync(join(folder, "blobs/sha256"), { recursive: true });
  const blob = (mediaType: string, content: Uint8Array | string) => {
    const digest = sha256(content);
    writeFileSync(join(folder, "blobs/sha256", digest), content);
    return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(content) };
  };
  const annotations = {
    "org.opencontainers.image.title": "keyhole",
    "org.opencontainers.image.description": description,
    "org.opencontainers.image.version": version,
    "org.opencontainers.image.revision": commit,
    "org.opencontainers.image.licenses": license,
    "org.opencontainers.image.created": created,
  };
  const platform = { architecture, os: "linux" };
  const config = {
    created,
    ...platform,
    config: { ...readDockerfile(), Labels: annotations },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ from }) => ({ created, created_by: from })),
  };
  const manifest = {
    schemaVersion: 2,
    mediaType: `${type}.manifest.v1+json`,
    config: blob(`${type}.config.v1+json`, JSON.stringify(config)),
    layers: layers.map(({ packed }) => blob(`${type}.layer.v1.tar+gzip`, packed)),
    annotations,
  };
  const names = { "org.opencontainers.image.ref.name": version, "io.containerd.image.name": `keyhole:${version}` };
  const entry = { ...blob(manifest.mediaType, JSON.stringify(manifest)), platform };
  const manifests = [{ ...entry, annotations: names }];
  const index = { schemaVersion: 2, mediaType: `${type}.index.v1+json`, manifests };
  writeFileSync(join(folder, "index.json"), JSON.stringify(index));
  writeFileSync(join(folder, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
  await $`chmod -R u=rwX,go=rX ${folder}`;
  return entry;
}

/** What the last stage of the Dockerfile says about how the image runs. `Healthcheck` is Docker's addition to OCI. */
function readDockerfile(): object {
  const text = readFileSync("Dockerfile", "utf8");
  const say = (instruction: string): string => {
    const found = new RegExp(`^${instruction} (.*)$`, "m").exec(text)?.[1];
    if (found === undefined) throw new Error(`The Dockerfile has no ${instruction} that stands in one line.`);
    return found;
  };
  const health = /^--interval=(\d+)s --timeout=(\d+)s CMD (.*)$/.exec(say("HEALTHCHECK"));
  if (health === null) throw new Error("The Dockerfile's HEALTHCHECK has another form.");
  const nanoseconds = (seconds = "") => Number(seconds) * 1_000_000_000;
  return {
    User: say("USER"),
    ExposedPorts: { [`${say("EXPOSE")}/tcp`]: {} },
    Env: ["PATH=/usr/bin", ...say("ENV").split(" ")],
    Entrypoint: JSON.parse(say("ENTRYPOINT")),
    Cmd: JSON.parse(say("CMD")),
    Volumes: { [say("VOLUME")]: {} },
    WorkingDir: "/",
    Healthcheck: {
      Test: ["CMD", ...JSON.parse(health[3] ?? "")],
      Interval: nanoseconds(health[1]),
      Timeout: nanoseconds(health[2]),
    },
  };
}

/**
 * Downloads a Debian package for any architecture, verified by apt with the keys of this machine. apt's lists are made
 * here, so neither root nor `dpkg --add-architecture` is needed.
 */
async function download(name: string, architecture: string, folder: string) {
  const options = Object.entries({
    "APT::Architecture": architecture,
    "APT::Architectures": architecture,
    "APT::Sandbox::User": "",
    "Acquire::Languages": "none",
    "Dir::State": folder,
    "Dir::State::status": "/dev/null",
    "Dir::Cache": folder,
  }).flatMap(([option, value]) => ["-o", `${option}=${value}`]);
  for (const needed of ["lists/partial", "archives/partial"]) mkdirSync(join(folder, needed), { recursive: true });
  await $`apt-get ${options} --quiet update`.quiet();
  await $`apt-get ${options} --quiet download ${name}`.cwd(folder).quiet();
  const file = readdirSync(folder).find((one) => one.endsWith(".deb"));
  if (file === undefined || !existsSync(join(folder, file))) throw new Error(`apt-get downloaded no ${name}.`);
  const version = (await $`dpkg-deb --field ${join(folder, file)} Version`.text()).trim();
  return {
    file: join(folder, file),
    uri: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`,
  };
}
