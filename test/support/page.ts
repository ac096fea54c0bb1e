/**
 * Runs the commands of a page as a reader would paste them: all in one shell, block after block. A block that is
 * neither run nor marked fails the test of its page.
 */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startOnTerminal } from "./keyhole.ts";
import { type Block, blocksOf, readPage } from "./markdown.ts";
import { findProgram } from "./programs.ts";

const root = join(import.meta.dir, "../..");

/** What the pages may use beside `keyhole`: nothing that could change this machine. */
export const needed: readonly string[] = [
  ..."bash cat cp curl date dirname env find grep install ls".split(" "),
  ..."mkdir mktemp mv node npm openssl rm sed sh sleep tail timeout touch tr true".split(" "),
];

/** Where a page is run. */
type Scene = {
  /** The shell's own. What a page calls `/etc/…` is below it. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Commands that the page takes for granted. */
  readonly before?: string;
  /** What stands for words of the page, such as an id. */
  readonly words?: Readonly<Record<string, string>>;
};

const advice =
  "Each block of commands is run as it stands. Before one that cannot be, put the line `<!-- not run: REASON -->`, or " +
  "`<!-- run by test/FOLDER/NAME.test.ts -->` if that test takes it from the page. A block in another language than " +
  "sh names it, such as ```text.";

/** Makes a folder for PATH with the needed programs alone: there is no other keyhole in it, and no Bun. */
export function makeBin(folder: string): string {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  for (const name of needed) symlinkSync(findProgram(name) ?? name, join(bin, name));
  return bin;
}

/** Whether a block is to be run. @throws Error for a mark that is wrong */
export function isRun(page: string, { language, text, comment = "" }: Block): boolean {
  if (language !== "" && language !== "sh") return false;
  const [, by] = /^run by (test\/\S+)$/.exec(comment) ?? [];
  if (by === undefined) return !/^not run: \S.{8,}$/s.test(comment);
  if (existsSync(join(root, by)) && readPage(by).includes(`"${page}"`)) return false;
  throw new Error(`${page}: ${by} does not name this page, so it cannot run this block:\n${text}\n${advice}`);
}

/** Runs the blocks of a page on a terminal, and answers its questions with yes. Returns what it showed. */
export async function runPage(page: string, scene: Scene): Promise<string> {
  const { folder, env, before = "" } = scene;
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const scripts = blocksOf(page).map((block) => {
    if (block.file !== undefined) {
      return `mkdir -p "$(dirname ${block.file})"\nprintf %s ${quoted(block.text)} > ${block.file}`;
    }
    return isRun(page, block) ? `block=${quoted(block.text)}\n${adapt(block.text, scene)}` : "";
  });
  const script = `set -eE
block=${quoted(`what the page takes for granted: ${before}`)}
trap 'echo; echo "FAILED: $BASH_COMMAND"; echo "in this block:"; echo "$block"' ERR
trap 'status=$?; kill $(jobs -p) 2>/dev/null || true; wait; exit $status' EXIT
${[adapt(before, scene), ...scripts].join("\n")}
`;
  writeFileSync(join(folder, "page.sh"), script);
  const reply = { question: "[y/N] ", answer: "y\r" };
  const shell = startOnTerminal([findProgram("bash") ?? "", "page.sh"], 200, folder, env, reply);
  const { exitCode, screen } = await shell.ended;
  if (exitCode !== 0) throw new Error(`${page} ended with ${exitCode}:\n${screen}\n${advice}`);
  return screen;
}

/**
 * Puts this run's ports, paths and words in place of the page's. What does not end runs in the background. A command
 * that the next one waits for (`&&`) stands alone, so that the shell ends if it fails.
 */
export function adapt(text: string, { folder, env, words = {} }: Scene): string {
  const ofPort = (name: string) => `127.0.0.1:${env[name]}`;
  const stood = { ...words, "127.0.0.1:4100": ofPort("PORT"), "127.0.0.1:4101": ofPort("KEYHOLE_OPS_PORT") };
  const own = Object.entries(stood)
    .reduce((text, [word, other]) => text.replaceAll(word, other), text)
    .replace(/(?<=[\s=>:'"])\/(?!dev\/)(?=\w+\/)/g, `${folder}/`);
  const ports = [env["PORT"], env["KEYHOLE_OPS_PORT"]].filter((port) => port !== undefined);
  const isUp = (port: string) => `until (: < /dev/tcp/127.0.0.1/${port}) 2>/dev/null; do kill -0 $!; done`;
  return own
    .split("\n")
    .map((text) => {
      const line = text.replace(/ &&(?=( +#.*)?$)/, "");
      // A dashboard ends here once it has printed its link.
      if (/^keyhole dashboard\b/.test(line)) return `grep -m 1 http: < <(${line} 2>&1)\nkill $!`;
      const endless = /^([A-Z_]+=\S+ )*keyhole (serve\b|witness\b|.* --(follow|watch)\b)/.test(line);
      const started = endless ? `${line.replace(/( +#.*|\s*&)$/, "")} &` : line;
      if (line.includes("keyhole serve")) return [started, ...ports.map(isUp)].join("\n");
      const [, witness] = /keyhole witness .*--port (\d+)/.exec(line) ?? [];
      return witness === undefined ? started : `${started}\n${isUp(witness)}`;
    })
    .join("\n");
}
