import type { FileContent } from "../seal/file-content.ts";
import { Remembered } from "./remembered.ts";

/**
 * Sealed file contents that have opened once, by the versions of their row and their data key's. What was opened is never
 * kept. SQLite has no row versions, so none of its contents is remembered.
 */
export class RememberedContents {
  readonly #contents: Remembered<{ readonly rowVersion: string; readonly content: FileContent }>;

  constructor(bytesMax: number = 32 * 1024 * 1024) {
    this.#contents = new Remembered(bytesMax);
  }

  /** The content of a listed file, if it is remembered as this very row. */
  find(projectId: string, entry: ContentEntry, rowVersion: string): FileContent | undefined {
    const found = this.#contents.get(keyOf(projectId, entry));
    return found?.rowVersion === rowVersion ? found.content : undefined;
  }

  remember(projectId: string, entry: ContentEntry, rowVersion: string, content: FileContent): void {
    this.#contents.set(keyOf(projectId, entry), { rowVersion, content }, entry.size + 1024);
  }
}

/**
 * Everything in its associated data. With the same checksum it is the same content, even if a standby that lost
 * writes gives another row the same row version.
 */
function keyOf(projectId: string, { id, size, sha256 }: ContentEntry): string {
  return `${projectId} ${id} ${size} ${sha256}`;
}

/** What a listing says of a content. */
type ContentEntry = { readonly id: string; readonly size: number; readonly sha256: string };
