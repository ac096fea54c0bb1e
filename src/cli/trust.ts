import { InvalidArgumentError } from "@commander-js/extra-typings";
import { discoverKeys } from "../access/issuer-keys.ts";
import {
  isTokenShaped,
  type KeySet,
  readToken,
  type Terms,
  tokenBytesMax,
  usableKeys,
  usableKinds,
  verifyToken,
} from "../access/token.ts";
import { Fault } from "../core/fault.ts";
import { exits, Problem } from "../core/problem.ts";
import { excerpt } from "../core/visible.ts";
import type { AdminContext } from "../desk/context.ts";
import { type KeyRecord, permittedReach, showKey } from "../people/keys.ts";
import { createTrust, validTrusts } from "../people/trusts.ts";
import { fetchJson } from "../server/fetch-json.ts";
import { withAdmin } from "../terminal/admin.ts";
import { answer, type Columns } from "../terminal/answer.ts";
import { type CommandContext, noun } from "../terminal/command.ts";
import { decodeText, readLocal } from "../terminal/input.ts";
import { idVerb } from "../terminal/verbs.ts";
import { credentialVerbs, grantOf, grantVerb, summary } from "./grant.ts";

export function trustCommand(context: CommandContext) {
  const add = grantVerb(
    "add",
    "Let the tokens of an OpenID Connect issuer stand in place of an API key.",
    "keyhole trust add --org acme --name web-deploy --issuer https://token.actions.githubusercontent.com --audience https://keyhole.example.com --claim repository_id=123456 --claim environment=production --project web --env production",
    "keyhole trust add --org acme --name web-pods --issuer https://kubernetes.default.svc.cluster.local --audience keyhole --claim sub=system:serviceaccount:web:web --jwks-file jwks.json --project web --env production",
  )
    .requiredOption("--name <name>", "required: what it is for")
    .requiredOption("--issuer <url>", "required: who issues the tokens, exactly as in their claim iss")
    .requiredOption("--audience <text>", "required: whom the tokens must be for, their only aud")
    .requiredOption(
      "--claim <name=value...>",
      "required: a claim that they must have, exactly; may be repeated",
      parseClaim,
    )
    .option("--jwks-file <file>", "the issuer's public keys, for a server that cannot fetch them")
    .action(async ({ name, issuer, audience, claim: claims, jwksFile, ...options }) => {
      const grant = grantOf(options);
      const { trust, keys, warnings } = await withAdmin(context, async (admin) => {
        const asked = { ...grant, name, issuer, audience, claims };
        if (jwksFile === undefined) return createTrust(admin, asked);
        await permittedReach(admin, grant);
        const jwks = decodeText(await readLocal(context, jwksFile, jwksBytesMax), jwksFile);
        return createTrust(admin, { ...asked, jwks });
      });
      const document = { ...trust, ...(keys && { keys }), ...(warnings.length > 0 && { warnings }) };
      const counts = keys ? [`Keys of the set: ${keys.total}, of which ${keys.usable} can verify tokens.`] : [];
      const words = [summary(trust), ...counts, ...warnings.map((warning) => `WARNING: ${warning}`)];
      await answer(context, document, words.join("\n"), `${trust.id}\n`);
    });

  const words = {
    list: "List the trusts.",
    none: "There are no trusts yet: run keyhole trust add.",
    show: "Show which tokens a trust accepts, and what they may read.",
    revoke: "Revoke a trust. The next request by it is refused.",
  };
  const [list, show, revoke] = credentialVerbs(context, "trust", words, termColumns);

  const tested = idVerb(
    "trust",
    "test",
    "Say whether a trust accepts the token on stdin, and if not, which check it fails.",
    "keyhole trust test 0199a3c4 < /var/run/secrets/tokens/keyhole",
  ).action(async (asked) => {
    const { id, name } = await withAdmin(context, async (admin) => {
      const record = await showKey(admin, asked, "trust");
      const text = decodeText(await readLocal(context, "-", tokenFileBytesMax), "stdin").trim();
      await testToken(admin, record, text);
      return record;
    });
    await answer(context, { id, accepted: true }, `Trust ${id} (${excerpt(name)}) accepts this token.`);
  });

  return noun("trust", "Tokens of CI jobs and pods in place of API keys.", add, list, show, revoke, tested);
}

const jwksBytesMax = 256 * 1024;
const tokenFileBytesMax = 64 * 1024;

function parseClaim(text: string, before: ReadonlyMap<string, string> | undefined): ReadonlyMap<string, string> {
  const [, name = "", value = ""] = /^([^=]+)=(.+)$/su.exec(text) ?? [];
  if (name === "") throw new InvalidArgumentError("takes NAME=VALUE, such as repository_id=123456.");
  if (before?.has(name)) throw new InvalidArgumentError("names a claim that was given before.");
  return new Map([...(before ?? []), [name, value]]);
}

const termColumns: Columns<KeyRecord> = {
  ISSUER: ({ terms }) => terms?.issuer ?? "-",
  AUDIENCE: ({ terms }) => terms?.audience ?? "-",
  CLAIMS: ({ terms }) =>
    Object.entries(terms?.claims ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join(" "),
  KEYS: ({ terms }) => terms?.keys ?? "-",
};

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
