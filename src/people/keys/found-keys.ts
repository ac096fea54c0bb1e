import { Problem } from "../../core/problem.ts";
import { Refused } from "../../core/refused.ts";
import { checkedLength, checksumLength, isWellFormedKey, prefix } from "../../serve/access/api-key.ts";
import { type Text, type Unread, whyNot } from "../leaks/texts.ts";

/** The API keys in texts, each once, and what was not read. @throws Refused as {@link findKeys} */
export async function findKeysIn(texts: AsyncIterable<Text>) {
  const found = new Set<string>();
  const unread: Unread[] = [];
  for await (const text of texts) {
    const why =
      "unread" in text ? text.unread : await findKeys(text.chunks, found).then(() => undefined, reasonOf(text));
    if (why !== undefined) unread.push({ name: text.name, why });
  }
  return { texts: [...found], unread };
}

function reasonOf({ name }: Text) {
  return (error: unknown) => {
    if (error instanceof Refused || error instanceof Problem) throw error;
    return whyNot(error as NodeJS.ErrnoException, name);
  };
}

/**
 * The API keys in a text, each once: whatever has the grammar and the checksum. The text may be UTF-16 or UTF-32, as
 * Windows PowerShell writes it: there, a key is its characters with zero bytes between them.
 * @throws Refused `bound` if it has more than 10,000 keys
 */
export async function findKeys(chunks: AsyncIterable<Uint8Array>, found: Set<string> = new Set()) {
  let rest = "";
  for await (const chunk of chunks) {
    const text = rest + Buffer.from(chunk).toString("latin1").replaceAll("\0", "");
    for (let at = text.indexOf(prefix); at >= 0; at = text.indexOf(prefix, at + 1)) {
      const candidate = text.slice(at, at + checkedLength + checksumLength);
      if (isWellFormedKey(candidate)) found.add(candidate);
    }
    if (found.size > foundMax) {
      const words = `The text has more than ${foundMax} keys: give it in parts. Nothing was looked up or revoked.`;
      throw new Refused("bound", words);
    }
    rest = text.slice(1 - checkedLength - checksumLength);
  }
  return [...found];
}

const foundMax = 10_000;
