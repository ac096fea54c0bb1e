/* A value without its entry cannot become a body. `test/unit/types.test.ts` tells how these files are read. */

import { type Body, Held, Render, renderHeld } from "../../src/core/held.ts";
import { accountsJson } from "../../src/kinds/accounts/render.ts";
import { type OpenedVariables, variablesDotenv } from "../../src/kinds/variables/render.ts";
import type { AuditEntry } from "../../src/record/entry.ts";
import { release } from "../../src/record/release.ts";
import type { OpenedItems } from "../../src/seal/set.ts";
import type { Caller } from "../../src/serve/access/authenticate.ts";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import { answer } from "../../src/serve/gates/body.ts";
import { type Exchange, json } from "../../src/serve/gates/exchange.ts";
import { released } from "../../src/serve/gates/record.ts";
import type { Share } from "../../src/serve/limit/budget.ts";

declare const parts: ApiParts;
declare const exchange: Exchange;
declare const caller: Caller;
declare const entries: AuditEntry[];
declare const held: Held<OpenedVariables>;
declare const share: Share;
declare const opened: OpenedItems;

export const body: Promise<Body> = release(parts.journal, entries, held, variablesDotenv);

// @ts-expect-error a Held as JSON text: 'Held<OpenedVariables>' is not assignable to .* 'string'
json(exchange, held);
// @ts-expect-error a Held as a response: 'Held<OpenedVariables>' is not assignable
new Response(held);
// @ts-expect-error a Held as a body: 'Held<OpenedVariables>' is missing .* 'Body'
void answer(parts, exchange, held, share, "");
// @ts-expect-error a lookalike: '#value' is missing
void release(parts.journal, entries, { toJSON: () => "" }, variablesDotenv);
// @ts-expect-error opened items instead of a Held: 'OpenedItems' is .*'Held<
void released(parts, exchange, caller, entries, { held: opened, share }, variablesDotenv, "");
// @ts-expect-error a journal that does not wait: 'void' is not assignable to type 'Promise<string \| undefined>'
void release({ record: () => {} }, entries, held, variablesDotenv);
// @ts-expect-error the body early: 'Promise<Body>'
export const early: Body = release(parts.journal, entries, held, variablesDotenv);
// @ts-expect-error another render: assignable to .*'(Held|Render)<
void release(parts.journal, entries, held, accountsJson(null));
// @ts-expect-error a render that returns its input: not assignable to .* Body
new Render((value: OpenedVariables) => value);
// @ts-expect-error a render without the count of entries: Expected 3 arguments
renderHeld(held, variablesDotenv);

export class Open extends Held<string> {
  peek() {
    // @ts-expect-error its private field in a subclass: not accessibl
    return this.#value;
  }
}

/** The functions of a module whose results hold bytes outside a Held. */
export type Leaks<M> = {
  [K in keyof M]: M[K] extends (...args: never[]) => infer R ? Bytes<Awaited<R>, K> : never;
}[keyof M];
type Bytes<T, K> =
  T extends Held<unknown>
    ? never
    : T extends Uint8Array
      ? K
      : T extends (...args: never[]) => unknown
        ? never
        : T extends readonly (infer E)[]
          ? Bytes<E, K>
          : T extends object
            ? { [P in keyof T]-?: Bytes<T[P], K> }[keyof T]
            : never;
/** The makers of renders in a module that take more than text: a callback could keep the value. */
export type Hooks<M> = {
  [K in keyof M]: M[K] extends typeof Render
    ? K
    : M[K] extends (...args: infer A) => Render<never>
      ? A extends readonly (string | null)[]
        ? never
        : K
      : never;
}[keyof M];

// @ts-expect-error bytes of a read: assignable to type '"peek"'
export const bytes: Leaks<{ peek(): Promise<{ all: Buffer }> }> = 1;
// @ts-expect-error a render's class from a render.ts: to type '"Own"'
export const own: Hooks<{ Own: typeof Render }> = 1;
// @ts-expect-error a render with a hook: type '"leak"'
export const hook: Hooks<{ leak(take: (v: unknown) => void): Render<1> }> = 1;
