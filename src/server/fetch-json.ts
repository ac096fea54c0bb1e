import { arch, platform } from "node:process";
import { version } from "../../package.json";

const bytesMax = 256 * 1024;

/**
 * Fetches a JSON document of an issuer: at most 256 KiB, within 5 s, without following redirects.
 * @throws Error whose message says what was wrong, and quotes nothing of the answer
 */
export async function fetchJson(url: string, timeoutMs = 5000): Promise<unknown> {
  const response = await fetch(url, {
    headers: {
      Accept: "application/json",
      // An answer that is not compressed cannot grow while it is unpacked.
      "Accept-Encoding": "identity",
      "User-Agent": `keyhole/${version} (${platform}; ${arch})`,
    },
    redirect: "manual",
    decompress: false,
    // Documents are fetched too rarely for a connection to be worth keeping, and one that was kept may be broken.
    keepalive: false,
    ...(url.startsWith("http:") && { proxy: false }),
    tls: { rejectUnauthorized: true },
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((error: unknown) => {
    throw failureOf(error, timeoutMs);
  });
  try {
    if (response.status !== 200) throw new Problem(`it answered ${response.status}`);
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of response.body ?? []) {
      length += chunk.length;
      if (length > bytesMax) throw new Problem(`its answer is longer than ${bytesMax / 1024} KiB`);
      chunks.push(chunk);
    }
    return parse(Buffer.concat(chunks));
  } catch (error) {
    throw failureOf(error, timeoutMs);
  } finally {
    await response.body?.cancel().catch(() => {});
  }
}

class Problem extends Error {}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new Problem("its answer is not JSON");
  }
}

function failureOf(error: unknown, timeoutMs: number): Problem {
  if (error instanceof Problem) return error;
  const { name, code } = error as { name?: unknown; code?: unknown };
  if (name === "TimeoutError") return new Problem(`it did not answer within ${timeoutMs / 1000} s`);
  const reason = typeof code === "string" && /^\w{1,60}$/.test(code) ? code : "no reason given";
  return new Problem(`it cannot be reached: ${reason}`);
}
