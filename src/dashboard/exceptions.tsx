/** @jsxImportSource preact */
import type { VNode } from "preact";
import { describeDifference } from "../audit/record.ts";
import { Warnings, Word } from "../pages/parts.tsx";
import type { Visit } from "../pages/visit.ts";
import { listExceptions } from "../people/audit-chain.ts";

/** For operators: the rows that the notary found to be against the record. */
export async function AgainstRecord({ admin }: Visit): Promise<VNode> {
  const found = await listExceptions(admin);
  return <Warnings items={found.map((one) => <Word>{describeDifference(one)}</Word>)} />;
}
