/** @jsxImportSource preact */
import type { VNode } from "preact";
import { Warnings, Word } from "../../dashboard/parts/parts.tsx";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { findUnsigned, listExceptions } from "./audit-chain.ts";
import type { Damaged } from "./operations.ts";

/** For operators: that no notary signs, and the rows that it found to be against the record. */
export async function AgainstRecord({ admin }: Visit): Promise<VNode> {
  const [unsigned, found] = await Promise.all([findUnsigned(admin), listExceptions(admin)]);
  const rows = found.map((one) => <Word>{one.sentence}</Word>);
  return <Warnings items={unsigned === undefined ? rows : [unsigned, ...rows]} />;
}

/** Says which parts of the audit a list leaves out, because they are damaged. */
export function Unread({ damaged: { problem } }: { readonly damaged: Damaged }) {
  return <Warnings items={problem === undefined ? [] : [problem.message]} />;
}
