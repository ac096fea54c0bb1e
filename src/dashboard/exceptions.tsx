/** @jsxImportSource preact */
import type { VNode } from "preact";
import { describeDifference } from "../audit/record.ts";
import { Warnings, Word } from "../pages/parts.tsx";
import type { Visit } from "../pages/visit.ts";
import { findUnsigned, listExceptions } from "../people/audit-chain.ts";

/** For operators: that no notary signs, and the rows that it found to be against the record. */
export async function AgainstRecord({ admin }: Visit): Promise<VNode> {
  const [unsigned, found] = await Promise.all([findUnsigned(admin), listExceptions(admin)]);
  const rows = found.map((one) => <Word>{describeDifference(one)}</Word>);
  return <Warnings items={unsigned === undefined ? rows : [unsigned, ...rows]} />;
}
