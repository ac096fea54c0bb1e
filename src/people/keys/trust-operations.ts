import { Fault } from "../../core/fault.ts";
import { fetchJson } from "../../core/fetch-json.ts";
import { exits, Problem, usageProblem } from "../../core/problem.ts";
import { excerpt } from "../../core/visible.ts";
import { Unfit, wholeNumber } from "../../core/words/parse.ts";
import { parseSpiffeId } from "../../core/words/spiffe.ts";
import { counted } from "../../core/words/text.ts";
import { discoverKeys } from "../../serve/access/issuer-keys.ts";
import {
  isTokenShaped,
  type KeySet,
  readToken,
  type Terms,
  tokenBytesMax,
  usableKeys,
  usableKinds,
  verifyToken,
} from "../../serve/access/token.ts";
import type { AdminContext } from "../desk/context.ts";
import { file, id, input, required, typed } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { type Columns, done } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import { requireText } from "../desk/validate.ts";
import { credentialOperations, grantInputs, grantOf, summary } from "./credentials.ts";
import { type KeyRecord, permittedReach, showKey } from "./keys.ts";
import type { ReadsPerJob } from "./providers.ts";
import { createTrust, validTrusts } from "./trusts.ts";

const jwksBytesMax = 256 * 1024;
const tokenFileBytesMax = 64 * 1024;

const add = operation({
  path: "trust add",
  about: "Let the tokens of an OpenID Connect issuer stand in place of an API key.",
  examples: [
    "keyhole trust add --org acme --name web-deploy --issuer https://token.actions.githubusercontent.com --audience https://keyhole.example.com --claim repository_id=123456 --claim environment=production --project web --env production",
    "keyhole trust add --org acme --name web-pods --issuer https://kubernetes.default.svc.cluster.local --audience keyhole --claim sub=system:serviceaccount:web:web --jwks-file jwks.json --project web --env production",
    "keyhole trust add --org acme --name web --issuer https://oidc.example.org --audience keyhole --spiffe-id spiffe://example.org/web --project web --env production",
  ],
  right: rightTo("trust.create"),
  inputs: {
    ...grantInputs,
    name: required(input("--name <name>", "what it is for")),
    issuer: required(input("--issuer <url>", "who issues the tokens, exactly as in their claim iss")),
    audience: required(input("--audience <text>", "the tokens' only audience (aud)")),
    claims: input("--claim <name=value...>", "a claim that they must have, exactly; may be repeated", parseClaim),
    spiffeId: input("--spiffe-id <id>", "the tokens' SPIFFE id (sub)", parseSpiffeId),
    readsPerJob: input(
      "--reads-per-job <number>",
      "how many answers with values one job gets, or unlimited (default: 10 for a known CI system)",
      (text): ReadsPerJob => (text === "unlimited" ? text : parseReads(text)),
    ),
    jwks: file("--jwks-file <file>", "the issuer's public keys, for a server that cannot fetch them", {
      bytesMax: jwksBytesMax,
    }),
  },
  check: (given) => [grantOf(given), claimsOf(given)],
  run: async (admin, { name, issuer, audience, claims, spiffeId, jwks, readsPerJob, ...given }) => {
    const asked = { ...grantOf(given), name, issuer, audience, claims: claimsOf({ claims, spiffeId }), readsPerJob };
    if (jwks !== undefined) await permittedReach(admin, asked);
    const text = jwks && requireText(jwks.name, await jwks.read());
    const { trust, keys, warnings } = await createTrust(admin, { ...asked, ...(text !== undefined && { jwks: text }) });
    const counts = keys ? [`Keys of the set: ${keys.total}, of which ${keys.usable} can verify tokens.`] : [];
    const reads = trust.terms?.perJob?.reads;
    const perJob = reads
      ? [
          `Each job gets ${counted(reads, "answer")} with values.${readsPerJob ? "" : " Give the number that it needs by --reads-per-job: a thief can use the rest."}`,
        ]
      : [];
    const words = [summary(trust), ...perJob, ...counts, ...warnings.map((warning) => `WARNING: ${warning}`)];
    const document = { ...trust, ...(keys && { keys }), ...(warnings.length > 0 && { warnings }) };
    return { ...done(document, words.join("\n")), shows: { text: `${trust.id}\n` } };
  },
});

/** What only a trust has. */
export const termColumns: Columns<KeyRecord> = {
  ISSUER: ({ terms }) => terms?.issuer ?? "-",
  AUDIENCE: ({ terms }) => terms?.audience ?? "-",
  CLAIMS: ({ terms }) =>
    Object.entries(terms?.claims ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join(" "),
  "READS PER JOB": ({ terms }) => `${terms?.perJob?.reads ?? "unlimited"}`,
  KEYS: ({ terms }) => terms?.keys ?? "-",
};

export const { listAll, show, revoke } = credentialOperations(
  "trust",
  {
    list: "List the trusts.",
    none: "run keyhole trust add.",
    show: "Show which tokens a trust accepts, and what they may read.",
    revoke: "Revoke a trust. The next request by it is refused.",
  },
  termColumns,
);

const tryToken = operation({
  path: "trust test",
  about: "Say whether a trust accepts the token on stdin, and if not, which check it fails.",
  examples: ["keyhole trust test 0199a3c4 < /var/run/secrets/tokens/keyhole"],
  right: ["see", "keys"],
  inputs: { id: id("trust"), token: typed({ bytesMax: tokenFileBytesMax }) },
  run: async (admin, { id, token }) => {
    const record = await showKey(admin, id, "trust");
    await testToken(admin, record, requireText("stdin", await token.read()).trim());
    const { name } = record;
    return done({ id: record.id, accepted: true }, `Trust ${record.id} (${excerpt(name)}) accepts this token.`);
  },
});

export const trusts: Operations = {
  about: "Tokens of CI jobs and pods in place of API keys.",
  rows: [add, listAll, show, revoke, tryToken],
};

/** The claims that are asked for. @throws Problem if there are none, or the subject is given twice */
function claimsOf(given: {
  readonly claims: ReadonlyMap<string, string> | undefined;
  readonly spiffeId: string | undefined;
}): ReadonlyMap<string, string> {
  const { claims = new Map<string, string>(), spiffeId } = given;
  if (spiffeId === undefined && claims.size === 0) {
    throw usageProblem("Say whose tokens these are: --claim, or --spiffe-id for SPIFFE.");
  }
  if (spiffeId === undefined) return claims;
  if (claims.has("sub")) throw usageProblem("--spiffe-id sets the claim sub: give it or --claim sub=…, not both.");
  return new Map([["sub", spiffeId], ...claims]);
}

const parseReads = wholeNumber(1, 10_000, ", or unlimited");

function parseClaim(text: string, before: ReadonlyMap<string, string> | undefined): ReadonlyMap<string, string> {
  const [, name = "", value = ""] = /^([^=]+)=(.+)$/su.exec(text) ?? [];
  if (name === "") throw new Unfit("takes NAME=VALUE, such as repository_id=123456.");
  if (before?.has(name)) throw new Unfit("names a claim that was given before.");
  return new Map([...(before ?? []), [name, value]]);
}

/** Verifies a token as a server does. @throws Problem that names the first check that fails */
async function testToken(admin: AdminContext, { id, status, terms }: KeyRecord, text: string): Promise<void> {
  try {
    if (!isTokenShaped(text)) {
      throw refusal(`it does not have the three parts of a token, or more than ${tokenBytesMax} characters`);
    }
    const token = readToken(text);
    if (token.issuer !== terms?.issuer) throw refusal(`its issuer is ${JSON.stringify(token.issuer)}`);
    const trusts = await validTrusts(admin, token.issuer);
    const own = trusts.filter((trust) => trust.id === id);
    if (own.length === 0) throw refusal(`the trust is ${status}`);
    const published = own[0]?.pinned === null ? await keysOf(admin, own[0].terms) : undefined;
    await verifyToken(token, own, published, admin.now());
    await verifyToken(token, trusts, published, admin.now());
  } catch (error) {
    if (error instanceof Fault && error.code === "unauthorized") throw refusal(error.message);
    throw error;
  }
}

/** For a person, each failure is the same sentence: they must not learn what this machine reaches. */
async function keysOf({ rights }: AdminContext, { issuer, isPublic = false }: Terms): Promise<KeySet> {
  const no = (why: string) => refusal(rights === "operator" ? why : "the issuer's keys cannot be had from here");
  const published = await discoverKeys(issuer, (url) => fetchJson(url, isPublic)).catch((error: unknown) => {
    throw no(`the issuer's keys cannot be had from here, ${(error as Error).message}`);
  });
  if (usableKeys(published.keys) > 0) return published;
  throw no(`none of the issuer's keys can be used: ${usableKinds}`);
}

function refusal(reason: string): Problem {
  return new Problem(exits.unauthorized, "unauthorized", `The token is refused: ${reason}.`);
}
