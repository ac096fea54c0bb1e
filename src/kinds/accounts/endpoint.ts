import { Type } from "typebox";
import { etagOf } from "../../access/etag.ts";
import { type Admission, admit } from "../../gates/admit.ts";
import type { Endpoint } from "../../gates/endpoint.ts";
import { type Exchange, json } from "../../gates/exchange.ts";
import { auditEntry, inScope, type Keyhole, readingOf, released, unlessChanged } from "../../gates/keyhole.ts";
import { isMetadataRead, lookupOf, parseQuery, querySchema } from "../../gates/query.ts";
import { example, listOf, members, parameters, record } from "../../gates/schema.ts";
import { accounts } from "./entry.ts";
import { listAccountNames, readAccounts } from "./read.ts";
import { accountsJson } from "./render.ts";

const values: Admission = { bucket: "value", surface: "rest_api", resource: accounts.resource };
const names: Admission = { ...values, bucket: "metadata" };

const accountsQuery = querySchema({
  environment: Type.Optional(parameters.environment),
  metadata_only: parameters.metadataOnly,
});

/** GET /projects/{slug}/accounts, with or without values. */
async function getAccounts(keyhole: Keyhole, exchange: Exchange, token: string | undefined, slug: string) {
  const { rawQuery, ifNoneMatch } = exchange;
  const onlyLists = isMetadataRead(rawQuery, "metadata_only") || ifNoneMatch !== undefined;
  const lookup = lookupOf(accounts, slug, rawQuery, !onlyLists);
  const caller = await admit(keyhole.gate, exchange, token, onlyLists ? names : values, lookup); // 401 429 403
  const query = parseAccounts(rawQuery); // 400
  const { environment, metadataOnly } = query;
  if (environment) inScope(caller, environment); // 403
  const reading = readingOf(keyhole, exchange, caller);
  const etag = (fingerprint: string) => etagOf(keyhole.etagKey, caller, ["accounts", slug, query], fingerprint);
  const list = () => listAccountNames(reading, slug, environment);
  if (metadataOnly) {
    const { accounts, fingerprint } = await list(); // 404 422 503
    return json(exchange, JSON.stringify({ environment, accounts }), etag(fingerprint));
  }
  const unchanged = await unlessChanged(keyhole, exchange, caller, "value", list, etag); // 404 422 503 429
  if (unchanged) return unchanged;
  const read = await readAccounts(reading, slug, environment); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "accounts.read", read.names);
  return released(keyhole, exchange, [entry], read, accountsJson(environment), etag(read.fingerprint)); // 503, or on record
}

function parseAccounts(raw: string) {
  const { environment, metadata_only } = parseQuery(accountsQuery, raw);
  return { environment: environment ?? null, metadataOnly: metadata_only === "true" };
}

export const Account = record("A shared account.", {
  name: members.name,
  environments: members.environments,
  updatedAt: members.updatedAt,
  values: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: "Fields such as `password`. Absent from a metadata read.",
    }),
  ),
});
export const Accounts = record("Shared accounts in byte order of name.", {
  environment: members.queriedEnvironment,
  accounts: listOf(Account),
});

export const endpoints: readonly Endpoint[] = [
  {
    path: "/projects/{slug}/accounts",
    get: getAccounts,
    admission: values,
    query: accountsQuery,
    id: "listAccounts",
    summary: "Shared accounts, or only their names",
    description: "Without `environment`, the accounts of every environment that the key reaches.",
    answers: { Account, Accounts },
    refusals: ["too_many_items"],
    example: {
      environment: "production",
      accounts: [
        {
          name: "mail",
          environments: ["production"],
          updatedAt: example.updatedAt,
          values: { user: "shop", password: "made-up" },
        },
      ],
    },
  },
];
