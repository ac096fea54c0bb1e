import { sqliteTables } from "../src/store/tables.ts";

// drizzle-kit reads a schema's tables from its exports.
export const {
  organizations,
  projects,
  systemKeys,
  dataKeys,
  sets,
  setVersions,
  fileContents,
  apiKeys,
  keyUses,
  variableRequests,
  rosters,
  auditSegments,
  auditHeads,
  auditCheckpoints,
  auditLeaves,
  auditCheckpointsSigned,
  auditCosignatures,
  auditExceptions,
  auditSigners,
  lastReads,
  lastReadsKnown,
  jobReads,
} = sqliteTables;
