/** A kind of machine that a release has a program for. */
export type Target = {
  readonly name: string;
  /** The npm package of Bun's runtime, in the version of the Bun that builds, and the checksum of its tarball. */
  readonly runtime: string;
  readonly integrity: string;
  /** As npm names them. */
  readonly os: "linux" | "darwin";
  readonly cpu: "x64" | "arm64";
  readonly libc?: "glibc" | "musl";
  /** Debian's name of the architecture, if there is a package and an image. Both need glibc. */
  readonly debian?: "amd64" | "arm64";
};

/**
 * Everything that a release has programs for. A new version of Bun has new checksums. Macs with Intel processors are
 * left out: Bun 1.4.5 leaves the signature of its own runtime in their programs, which does not fit and ends them at
 * once.
 */
export const targets: readonly Target[] = [
  {
    name: "linux-x64",
    runtime: "@oven/bun-linux-x64",
    integrity: "sha512-IWX9BELoGHAUtMonkeSaNaZwXzRk+oDw6Mk+HBFXd3KHYIBNBsIGRupMZPcgNoDbJpLu6gAJjIoIVPZtt1aJ1g==",
    os: "linux",
    cpu: "x64",
    libc: "glibc",
    debian: "amd64",
  },
  {
    name: "linux-arm64",
    runtime: "@oven/bun-linux-aarch64",
    integrity: "sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==",
    os: "linux",
    cpu: "arm64",
    libc: "glibc",
    debian: "arm64",
  },
  {
    name: "linux-x64-musl",
    runtime: "@oven/bun-linux-x64-musl",
    integrity: "sha512-10QoW/YfTgnURaGEaHpJCiXjLI2e5iTtfVDaA5JKcyUzaa1cq6cVUY9/Uq5XkYzvtRjHLRe9Oj/lTDIQcxy8HQ==",
    os: "linux",
    cpu: "x64",
    libc: "musl",
  },
  {
    name: "linux-arm64-musl",
    runtime: "@oven/bun-linux-aarch64-musl",
    integrity: "sha512-XCNc+WvvMAdNNb+OWTogpy+N9wm62fkVeEVLb6how0RZhW5LPi6c7BlkeVCuWps7XjEl2saFpHFa20/1E+PAHg==",
    os: "linux",
    cpu: "arm64",
    libc: "musl",
  },
  {
    name: "darwin-arm64",
    runtime: "@oven/bun-darwin-aarch64",
    integrity: "sha512-4MIFXHmctH2EhAxLXm2/qxNtv17dFtLJylvaOCsrgq6KSqHTs6eW5YSrJjRbJxYUJaR901fsN8JfZOa+CsWpWQ==",
    os: "darwin",
    cpu: "arm64",
  },
];

/** @throws Error if there is no such target */
export function findTarget(name: string): Target {
  const found = targets.find((target) => target.name === name);
  if (found === undefined) throw new Error(`There is no target ${name}: there are ${targets.map((t) => t.name)}.`);
  return found;
}
