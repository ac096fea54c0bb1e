import { Database } from "bun:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Does what runs `keyhole var edit` while no other test of this run does. Each edit removes what earlier ones of the same
 * account kept, wherever they ran.
 */
export async function editingAlone<T>(work: () => Promise<T>): Promise<T> {
  using lock = new Database(join(tmpdir(), "edits.lock"));
  lock.run("pragma busy_timeout = 300000");
  lock.run("begin exclusive");
  return await work();
}
