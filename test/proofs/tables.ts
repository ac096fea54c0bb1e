import { agents } from "./agents.ts";
import { clients } from "./clients.ts";
import { commands } from "./commands.ts";
import { contents } from "./contents.ts";
import { forms, pages } from "./dashboard.ts";
import { database } from "./database.ts";
import { envelopes } from "./envelopes.ts";
import { kept } from "./history.ts";
import { durable, verification } from "./journal.ts";
import { keys } from "./keys.ts";
import { limits } from "./limits.ts";
import { machinesOnly } from "./machines-only.ts";
import { months } from "./months.ts";
import { network, watching } from "./network.ts";
import { putBack, signing } from "./notary.ts";
import { people, signingIn } from "./persons.ts";
import type { Proof } from "./proof.ts";
import { reads } from "./reads.ts";
import { chain, entries, trees } from "./record.ts";
import { remembered } from "./remembered.ts";
import { requests } from "./requests.ts";
import { asked } from "./rights.ts";
import { secondLines } from "./second-lines.ts";
import { sets } from "./sets.ts";
import { told } from "./told.ts";
import { trusts } from "./trusts.ts";

/** Every proof, by what it is about. `docs/maintainers/proofs.md` lists how many there are of each. */
export const tables: Readonly<Record<string, readonly Proof[]>> = {
  "sets: whole, in their place and as they were written": sets,
  "reads: what random histories find": reads,
  "what is for machines only": machinesOnly,
  "history: kept, believed and put back": kept,
  "contents of files": contents,
  "envelopes, and keys that wrap keys": envelopes,
  "keys: who may read what": keys,
  "trusts: who may read what, by token": trusts,
  "how often, and how much at once": limits,
  "the database answers, and is the right one": database,
  "requests, answers and their tags": requests,
  "agents, and what they ask people for": agents,
  "the audit: no value without its entry": entries,
  "the audit: no entry changed unseen": chain,
  "the audit's signed tree, its notes and proofs": trees,
  "the audit: months that are sealed": months,
  "sets that are remembered are what the database has": remembered,
  "the audit: no entry is swallowed": durable,
  "the audit: what a verification finds, and what retention leaves": verification,
  "the audit: what the notary and witnesses sign": signing,
  "rows and databases that were put back": putBack,
  "what a database may be, and how far it is believed": network,
  "persons: their rights and their list": people,
  "persons: where rights are asked": asked,
  "persons: how they sign in": signingIn,
  "people's commands": commands,
  "the dashboard's door and pages": pages,
  "the dashboard's forms": forms,
  "clients, and the commands that they start": clients,
  "clients that watch": watching,
  "reads that wait for a change": told,
  "defences that have a second one behind them": secondLines,
};
