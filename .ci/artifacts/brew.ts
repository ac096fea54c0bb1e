import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publisher } from "../../package.json";
import { archiveOf, type Source, sha256 } from "./archive.ts";
import type { Target } from "./targets.ts";

const systems = { darwin: "macos", linux: "linux" } as const;
const processors = { x64: "intel", arm64: "arm" } as const;

/** Writes keyhole.rb, the Homebrew formula of the archives in a folder. Homebrew's own programs on Linux need glibc. */
export function writeFormula(folder: string, targets: readonly Target[], source: Source): void {
  const blocks = Object.entries(systems).map(([os, word]) => {
    const archives = targets.filter((target) => target.os === os && target.libc !== "musl");
    const inside = archives.map((target) => {
      const file = `${archiveOf(target, source)}.tar.gz`;
      return `    on_${processors[target.cpu]} do
      url "${publisher.releases}/v${source.version}/${file}"
      sha256 "${sha256(readFileSync(join(folder, file)))}"
    end
`;
    });
    return inside.length === 0 ? "" : `  on_${word} do\n${inside.join("")}  end\n\n`;
  });
  const formula = `class Keyhole < Formula
  desc "Self-hosted, read-only HTTP API for secrets"
  homepage "${publisher.releases}"
  version "${source.version}"
  license "${source.license}"

${blocks.join("")}  def install
    bin.install "keyhole"
    generate_completions_from_executable(bin/"keyhole", "completion", shells: [:bash, :zsh, :fish])
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/keyhole version")
  end
end
`;
  writeFileSync(join(folder, "keyhole.rb"), formula);
}
