import postgres0000 from "./postgres/0000_tables.sql" with { type: "text" };
import postgres0001 from "./postgres/0001_organization_seal.sql" with { type: "text" };
import postgres0002 from "./postgres/0002_persons.sql" with { type: "text" };
import postgres0003 from "./postgres/0003_heads.sql" with { type: "text" };
import postgres0004 from "./postgres/0004_environments.sql" with { type: "text" };
import postgres0005 from "./postgres/0005_notary.sql" with { type: "text" };
import postgres0006 from "./postgres/0006_exceptions.sql" with { type: "text" };
import postgres0007 from "./postgres/0007_cosignatures.sql" with { type: "text" };
import postgres0008 from "./postgres/0008_last_reads.sql" with { type: "text" };
import postgres0009 from "./postgres/0009_job_reads.sql" with { type: "text" };
import postgres0010 from "./postgres/0010_journal.sql" with { type: "text" };
import postgres0011 from "./postgres/0011_leaves.sql" with { type: "text" };
import postgres0012 from "./postgres/0012_found_by.sql" with { type: "text" };
import postgres0013 from "./postgres/0013_rate.sql" with { type: "text" };
import postgres0014 from "./postgres/0014_from.sql" with { type: "text" };
import sqlite0000 from "./sqlite/0000_tables.sql" with { type: "text" };
import sqlite0001 from "./sqlite/0001_organization_seal.sql" with { type: "text" };
import sqlite0002 from "./sqlite/0002_persons.sql" with { type: "text" };
import sqlite0003 from "./sqlite/0003_heads.sql" with { type: "text" };
import sqlite0004 from "./sqlite/0004_environments.sql" with { type: "text" };
import sqlite0005 from "./sqlite/0005_notary.sql" with { type: "text" };
import sqlite0006 from "./sqlite/0006_exceptions.sql" with { type: "text" };
import sqlite0007 from "./sqlite/0007_cosignatures.sql" with { type: "text" };
import sqlite0008 from "./sqlite/0008_last_reads.sql" with { type: "text" };
import sqlite0009 from "./sqlite/0009_job_reads.sql" with { type: "text" };
import sqlite0010 from "./sqlite/0010_journal.sql" with { type: "text" };
import sqlite0011 from "./sqlite/0011_leaves.sql" with { type: "text" };
import sqlite0012 from "./sqlite/0012_found_by.sql" with { type: "text" };
import sqlite0013 from "./sqlite/0013_rate.sql" with { type: "text" };
import sqlite0014 from "./sqlite/0014_from.sql" with { type: "text" };

/** The migrations in order, with their moments. Written by `bun run generate`. */
export const postgres = [
  { text: postgres0000, at: 1795321605516 },
  { text: postgres0001, at: 1795399892868 },
  { text: postgres0002, at: 1795435217418 },
  { text: postgres0003, at: 1795604093546 },
  { text: postgres0004, at: 1795606855113 },
  { text: postgres0005, at: 1795616263663 },
  { text: postgres0006, at: 1795631282452 },
  { text: postgres0007, at: 1795635616933 },
  { text: postgres0008, at: 1795642202467 },
  { text: postgres0009, at: 1795798348797 },
  { text: postgres0010, at: 1795889370619 },
  { text: postgres0011, at: 1795905663354 },
  { text: postgres0012, at: 1795935313170 },
  { text: postgres0013, at: 1795950993266 },
  { text: postgres0014, at: 1795965498619 },
];
export const sqlite = [
  { text: sqlite0000, at: 1795321606395 },
  { text: sqlite0001, at: 1795399894767 },
  { text: sqlite0002, at: 1795435217831 },
  { text: sqlite0003, at: 1795604096555 },
  { text: sqlite0004, at: 1795606860648 },
  { text: sqlite0005, at: 1795616269266 },
  { text: sqlite0006, at: 1795631284197 },
  { text: sqlite0007, at: 1795635617537 },
  { text: sqlite0008, at: 1795642205442 },
  { text: sqlite0009, at: 1795798355273 },
  { text: sqlite0010, at: 1795889373192 },
  { text: sqlite0011, at: 1795905564790 },
  { text: sqlite0012, at: 1795935317219 },
  { text: sqlite0013, at: 1795950999142 },
  { text: sqlite0014, at: 1795965506364 },
];
