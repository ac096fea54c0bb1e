import { binary } from "./keyhole.ts";
import { eventually } from "./server.ts";

/** Starts `keyhole witness` on a free port. @param logs - verifier keys */
export async function startWitness(options: {
  readonly folder: string;
  readonly logs: readonly string[];
  readonly name?: string;
  readonly port?: number;
}) {
  const { folder, logs, name, port = 0 } = options;
  const named = name === undefined ? [] : ["--name", name];
  const words = [
    "witness",
    "--folder",
    folder,
    "--port",
    String(port),
    ...logs.flatMap((key) => ["--log", key]),
    ...named,
  ];
  const child = Bun.spawn([binary, ...words], { env: {}, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  let said = "";
  const collected = (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of child.stderr) said += decoder.decode(bytes, { stream: true });
  })();
  await eventually(() => said.includes("Witnessing ") || child.exitCode !== null);
  const [, key = ""] = /The key of this witness is (\S+)/.exec(said) ?? [];
  const [, origin = ""] = / on (http:\S+)\.\n/.exec(said) ?? [];
  if (origin === "") throw new Error(`the witness did not start: ${said}`);
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await child.exited;
    await collected;
  };
  return {
    key,
    origin,
    /** What `KEYHOLE_WITNESS` names it by. */
    setting: `${origin}#${key}`,
    submit: (body: string) => fetch(`${origin}/add-checkpoint`, { method: "POST", body }),
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
  };
}
