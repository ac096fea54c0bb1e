/**
 * The program behind `bun run record`: runs `bun run demo --once` in a fresh clone on a terminal of 80 columns, and
 * draws what it printed, and when, as docs/demo.svg.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What a program printed at once, and how long after its start. */
type Piece = { readonly atMs: number; readonly text: string };
/** A line of the terminal, as it was printed: longer ones take several rows. */
type Line = { readonly atMs: number; readonly text: string };

const columns = 80;
const command = ["run", "demo", "--once"] as const;
const root = join(import.meta.dir, "../..");

/** Runs the demo in this folder to its end. @throws Error with all that it printed, if it fails */
export async function runDemo(cwd: string, env: Readonly<Record<string, string>> = {}): Promise<Piece[]> {
  const pieces: Piece[] = [];
  const closed = Promise.withResolvers<void>();
  const decoder = new TextDecoder();
  const startedMs = performance.now();
  const { PATH = "", HOME = "" } = process.env;
  const demo = Bun.spawn([process.execPath, ...command], {
    cwd,
    env: { PATH, HOME, TERM: "xterm-256color", ...env },
    terminal: {
      cols: columns,
      rows: 24,
      data: (_, bytes) => {
        pieces.push({ atMs: performance.now() - startedMs, text: decoder.decode(bytes, { stream: true }) });
      },
      exit: () => closed.resolve(),
    },
  });
  const exitCode = await demo.exited;
  demo.terminal?.close();
  await closed.promise;
  if (exitCode !== 0) throw new Error(`the demo ended with ${exitCode}: ${pieces.map(({ text }) => text).join("")}`);
  return pieces;
}

/** The lines that these pieces are on a screen, without colours. A line appears when its first character does. */
export function linesOf(pieces: readonly Piece[]): Line[] {
  const lines: Line[] = [];
  let open: Line | undefined;
  for (const { atMs, text } of pieces) {
    for (const part of text.split(/(?<=\n)/)) {
      open = { atMs: open?.atMs ?? atMs, text: (open?.text ?? "") + part };
      if (!part.endsWith("\n")) continue;
      lines.push({ ...open, text: Bun.stripANSI(open.text).trimEnd() });
      open = undefined;
    }
  }
  return lines;
}

/** An SVG document that shows each line at its time, again and again; all of them at once if motion is not wanted. */
export function draw(printed: readonly Line[]): string {
  const lines = [{ atMs: 0, text: `$ bun ${command.join(" ")}` }, ...shorten(printed)];
  // Lines that appear together share a step. The command is there from the beginning.
  const steps = [...new Set(lines.map(({ atMs }) => atMs))].filter((atMs) => atMs > 0);
  const wholeMs = Math.max(...steps) + holdMs;
  const styles = steps.map((atMs, at) => {
    const percent = (ms: number) => `${((100 * ms) / wholeMs).toFixed(3)}%`;
    const frames = `0%,${percent(atMs)}{opacity:0}${percent(atMs + 1)},to{opacity:1}`;
    return `@keyframes s${at}{${frames}}.s${at}{animation:s${at} ${wholeMs}ms infinite}`;
  });
  let row = 0;
  const texts = lines.map(({ atMs, text }) => {
    const kinds = atMs === 0 ? ["command"] : [`s${steps.indexOf(atMs)}`, ...(text.startsWith("$ ") ? ["script"] : [])];
    const rows = text === "" ? [""] : (text.match(new RegExp(`.{1,${columns}}`, "gsu")) ?? []);
    const spans = rows.map((part) => `<tspan x="${marginPx}" y="${top + rowPx * row++}">${escapeText(part)}</tspan>`);
    return `<text class="${kinds.join(" ")}">${spans.join("")}</text>`;
  });
  const [width, height] = [columns * columnPx + 2 * marginPx, top + rowPx * row];
  const dots = ["#ff5f57", "#febc2e", "#28c840"].map(
    (fill, at) => `<circle cx="${24 + 20 * at}" cy="22" r="6" fill="${fill}"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" xml:space="preserve" role="img" aria-labelledby="title about">
<title id="title">A recording of the demo</title>
<desc id="about">A terminal on which the demo starts a server, reads three variables over HTTP and prints the answer. Made by bun run record from a real run; pauses are shortened to ${pauseMsMax} ms.</desc>
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre;fill:#24292f}
.command{font-weight:700}.script{fill:#6e7781}.window{fill:#f6f8fa;stroke:#d0d7de}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.script{fill:#8b949e}.window{fill:#161b22;stroke:#30363d}}
@media (prefers-reduced-motion:no-preference){
${styles.join("\n")}
}
</style>
<rect class="window" x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="10"/>
${dots.join("")}
${texts.join("\n")}
</svg>
`;
}

/** The text of each line that a document of {@link draw} shows, the command included. */
export function linesIn(svg: string): string[] {
  return [...svg.matchAll(/<text[^>]*>(.*)<\/text>/g)].map(([, spans = ""]) =>
    unescapeText(spans.replace(/<[^>]*>/g, "")),
  );
}

const pauseMsMax = 1500;
const holdMs = 12_000;
const marginPx = 20;
const columnPx = 8.5;
const rowPx = 20;
const top = 60;

/** Takes what is too long out of the pauses. Times become whole and later than 0. */
function shorten(lines: readonly Line[]): Line[] {
  let cutMs = 0;
  let lastMs = 0;
  return lines.map(({ atMs, text }) => {
    cutMs += Math.max(0, atMs - lastMs - pauseMsMax);
    lastMs = atMs;
    return { atMs: Math.max(1, Math.round(atMs - cutMs)), text };
  });
}

function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function unescapeText(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

if (import.meta.main) {
  // A name that says nothing of this machine: the demo prints the path of its root key.
  const clone = "/tmp/keyhole";
  mkdirSync(clone);
  try {
    const cloned = Bun.spawnSync(["git", "clone", "--quiet", "--depth", "1", `file://${root}`, clone], {
      stderr: "inherit",
    });
    if (cloned.exitCode !== 0) throw new Error("The checkout could not be cloned.");
    const lines = linesOf(await runDemo(clone));
    if (!lines.some(({ text }) => text.endsWith(":4100/api/v1"))) throw new Error("Port 4100 is in use.");
    writeFileSync(join(root, "docs/demo.svg"), draw(lines));
  } finally {
    rmSync(clone, { recursive: true });
  }
}
