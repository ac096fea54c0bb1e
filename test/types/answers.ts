/* The npm package's types of answers are those of the API's schemas. */

import type { Static } from "typebox";
import type * as client from "../../src/client/npm/client.ts";
import type { FaultCode } from "../../src/core/fault.ts";
import type { Account, Accounts, Files, SecretFile, Variable, Variables } from "../../src/kinds/answers.ts";
import type { Organization, Project, ProjectSummary } from "../../src/serve/api/answers.ts";

/** Fails to compile unless both types are the same, `readonly` aside. */
type Same<A, B> = (<X>() => X extends Plain<A> ? 1 : 2) extends <X>() => X extends Plain<B> ? 1 : 2 ? true : never;
type Plain<T> = T extends object ? { -readonly [Name in keyof T]: Plain<T[Name]> } : T;
/** A project without its counts, of which the schema has one for each kind. */
type Uncounted<Whole> = { [N in keyof Whole as N extends `${string}Count` ? never : N]: Whole[N] };
/** The same with other items in its list: those with values, or those without. */
type Listing<Whole, Name extends keyof Whole, Item> = { [N in keyof Whole]: N extends Name ? Item[] : Whole[N] };

/** The package writes its types out, since it is its own files alone. */
export const same = {
  organization: true satisfies Same<client.Organization, Static<typeof Organization>>,
  summary: true satisfies Same<
    Uncounted<client.Projects["projects"][number]>,
    Uncounted<Static<typeof ProjectSummary>>
  >,
  project: true satisfies Same<Uncounted<client.Project>, Uncounted<Static<typeof Project>>>,
  variable: true satisfies Same<client.Variable, Required<Static<typeof Variable>>>,
  variableName: true satisfies Same<client.VariableName, Omit<Static<typeof Variable>, "value">>,
  variables: true satisfies Same<client.Variables, Listing<Static<typeof Variables>, "variables", client.Variable>>,
  names: true satisfies Same<client.VariableNames, Listing<Static<typeof Variables>, "variables", client.VariableName>>,
  account: true satisfies Same<client.Account, Required<Static<typeof Account>>>,
  accounts: true satisfies Same<client.Accounts, Listing<Static<typeof Accounts>, "accounts", client.Account>>,
  file: true satisfies Same<client.SecretFile, Required<Static<typeof SecretFile>>>,
  files: true satisfies Same<client.Files, Listing<Static<typeof Files>, "files", client.SecretFile>>,
  codes: true satisfies Same<client.ApiErrorCode, FaultCode>,
};

// @ts-expect-error a type with an optional member more as the same: Type 'true' is not assignable to type 'never'
export const differs: Same<client.Organization, client.Organization & { readonly more?: string }> = true;
