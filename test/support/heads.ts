import { hkdfSync } from "node:crypto";
import { encodeFields, systemKeyAssociatedData } from "../../src/seal/associated-data.ts";
import { seal } from "../../src/seal/envelope.ts";
import type { SystemKeyPurpose } from "../../src/seal/keyring.ts";

import type { Row, World } from "./world.ts";

/** The head of the lane of commands, as somebody who reads the database saves it. */
export async function savedHead({ run }: Pick<World, "run">): Promise<Row> {
  return (await run("select * from audit_heads where lane = 'commands'"))[0] as Row;
}

/** Puts a saved head back with SQL. */
export async function putHeadBack({ run }: Pick<World, "run">, head: Row): Promise<void> {
  await run("delete from audit_heads");
  const values = ["lane", "seq", "at", "mac", "roster", "seal"].map((column) => head[column]);
  await run("insert into audit_heads (lane, seq, at, mac, roster, seal) values (?, ?, ?, ?, ?, ?)", values);
}

/** Makes of an installation one whose head was never sealed. @returns the system keys, as they are stored from now on */
export async function unsealHead({ run, config, installation }: World): Promise<Row[]> {
  await run("update audit_heads set roster = null, seal = null");
  const rootKey = config.rootKey.from === "text" ? Buffer.from(config.rootKey.text, "base64") : "";
  const wrapKey = hkdfSync("sha256", rootKey, "", encodeFields("keyhole 1 wrap key"), 32);
  for (const [purpose, key] of Object.entries(installation.systemKeys)) {
    const about = systemKeyAssociatedData(purpose as SystemKeyPurpose, installation.keyring.rootId);
    const wrapped = seal(new Uint8Array(wrapKey), 1, about, key);
    await run("update system_keys set wrapped = ? where purpose = ?", [wrapped, purpose]);
  }
  return run("select purpose, wrapped from system_keys");
}
