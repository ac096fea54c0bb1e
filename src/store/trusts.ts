import { sql } from "drizzle-orm";
import type { TrustRow } from "../access/trust-directory.ts";
import type { Database } from "./database.ts";
import { bounded, liveness, projectList, projectsBytesMax, termsBytesMax, trustTerms } from "./reach.ts";

/** The most valid trusts of an installation. Those beyond are not found. */
export const trustsMax = 1000;
/** The most bytes that their terms and project lists take together: anybody with a token causes this read. */
const trustsBytesMax = 4 * 1024 * 1024;

/** Prepares the list of all valid trusts. */
export function trustList(database: Database): () => Promise<TrustRow[]> {
  const { apiKeys: k } = database.tables;
  const list = database.query<TrustRow>(sql`
    select ${k.id} as "keyId", ${k.organizationId} as "organizationId", ${k.surfaces} as surfaces,
      ${k.resources} as resources, ${k.environments} as environments, ${projectList(database)} as projects,
      ${k.expiresAt} as "expiresAt", ${trustTerms(database)} as trust, ${k.digest} as digest,
      ${bounded(k.grantSeal, 32)} as "grantSeal"
    from ${k} where ${k.id} in (
      select valid.id from (
        select ${k.id} as id, sum(octet_length(${k.trust}) + coalesce(octet_length(${k.projects}), 0))
          over (order by ${k.id}) as bytes
        from ${k} where ${k.trust} is not null and ${liveness(database)} = 1
          and octet_length(${k.trust}) <= ${sql.raw(String(termsBytesMax))} and octet_length(${k.grantSeal}) = 32
          and coalesce(octet_length(${k.projects}), 0) <= ${sql.raw(String(projectsBytesMax))}
        order by ${k.id} limit ${sql.raw(String(trustsMax))}) as valid
      where valid.bytes <= ${sql.raw(String(trustsBytesMax))})
    order by ${k.id}`);
  return () => list({});
}
