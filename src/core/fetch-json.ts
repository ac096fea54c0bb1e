import { guardedFetch } from "./guarded-fetch.ts";
import { requestJson, whyNoReply } from "./json-request.ts";
import { publicFetch } from "./public-fetch.ts";

/**
 * Fetches a JSON document of an issuer: at most 256 KiB, within 5 s, without following redirects.
 * @param isPublic - whether it must be on the internet, because a person named it who is no operator
 * @throws Error whose message says what was wrong, and quotes nothing of the answer
 */
export async function fetchJson(url: string, isPublic: boolean, timeoutMs = 5000): Promise<unknown> {
  const headers = { Accept: "application/json" };
  const fetch = isPublic ? publicFetch : guardedFetch;
  const reply = await requestJson(url, { headers, timeoutMs, bytesMax: 256 * 1024, fetch });
  if ("failed" in reply) throw new Error(`it ${whyNoReply(reply, timeoutMs)}`);
  if (reply.status !== 200) throw new Error(`it answered ${reply.status}`);
  if ("wrong" in reply.body) throw new Error(`its answer is ${reply.body.wrong}`);
  return reply.body.json;
}
