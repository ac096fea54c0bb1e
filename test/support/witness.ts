import { binary } from "./keyhole.ts";
import { startProgram } from "./program.ts";

/** Starts `keyhole witness` on a free port. @param logs - verifier keys */
export async function startWitness(options: {
  readonly folder: string;
  readonly logs: readonly string[];
  readonly name?: string;
  readonly port?: number;
}) {
  const { folder, logs, name, port = 0 } = options;
  const words = ["witness", "--folder", folder, "--port", String(port), ...logs.flatMap((key) => ["--log", key])];
  const witness = startProgram([binary, ...words, ...(name === undefined ? [] : ["--name", name])], {});
  await witness.says("Witnessing ");
  const { stderr } = witness.said();
  const [, key = ""] = /The key of this witness is (\S+)/.exec(stderr) ?? [];
  const [, origin = ""] = / on (http:\S+)\.\n/.exec(stderr) ?? [];
  return {
    key,
    origin,
    /** What `KEYHOLE_WITNESS` names it by. */
    setting: `${origin}#${key}`,
    submit: (body: string) => fetch(`${origin}/add-checkpoint`, { method: "POST", body }),
    said: witness.said,
    stop: witness.stop,
  };
}
