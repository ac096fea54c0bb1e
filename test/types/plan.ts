/* A row that asks has a plan, and a plan says what was seen. */

import { input, project } from "../../src/people/desk/inputs.ts";
import { operation } from "../../src/people/desk/operation.ts";
import { done } from "../../src/people/desk/outcome.ts";
import type { Plan } from "../../src/people/desk/plan.ts";

const words = {
  path: "project rename",
  about: "Give a project another slug.",
  examples: ["keyhole project rename acme/web shop"],
  right: "operator",
  inputs: { project, slug: input("<slug>", "the new slug") },
} as const;
const outcome = done({}, "Done.");
const plan: Plan = { seen: {}, document: {}, apply: async () => outcome };
const run = async () => outcome;

operation({ ...words, run });
operation({ ...words, asks: "needs --yes", plan: async () => plan });

// @ts-expect-error a row that asks without a plan: No overload|not assignable
operation({ ...words, asks: "needs --yes", run });
// @ts-expect-error a row that asks if it can, without a plan: No overload|not assignable
operation({ ...words, asks: "if it can", run });
// @ts-expect-error a row with a plan and a way around it: No overload|not assignable
operation({ ...words, plan: async () => plan, run });
// @ts-expect-error a plan that does not say what was seen: 'seen' is missing
export const unseen: Plan = { document: {}, apply: async () => outcome };
// @ts-expect-error a plan that does nothing: 'apply' is missing
export const idle: Plan = { seen: {}, document: {} };
