import { postgresTables } from "../src/store/tables.ts";

// drizzle-kit reads a schema's tables from its exports.
export const {
  organizations,
  projects,
  systemKeys,
  dataKeys,
  sets,
  fileContents,
  apiKeys,
  keyUses,
  auditSegments,
  auditHeads,
  auditCheckpoints,
} = postgresTables;
