import { dayMs, environments } from "../../core/names.ts";
import { exits, Problem, usageProblem } from "../../core/problem.ts";
import { excerpt, jsonLine } from "../../core/visible.ts";
import { parseList } from "../../core/words/lists.ts";
import { Unfit, wholeNumber } from "../../core/words/parse.ts";
import { counted, formatTime, listed } from "../../core/words/text.ts";
import { parseDuration, parseMoment } from "../../core/words/times.ts";
import { auditActions } from "../../kinds/people.ts";
import { personText } from "../../record/entry.ts";
import { gapName } from "../../record/flaw.ts";
import type { Segment } from "../../record/segment.ts";
import { commandLine } from "../desk/command-line.ts";
import type { AdminContext } from "../desk/context.ts";
import {
  choice,
  choices,
  completed,
  file,
  flag,
  input,
  ofOrganization,
  out,
  type ReadInput,
  wide,
} from "../desk/inputs.ts";
import { operation } from "../desk/operation.ts";
import { type Columns, done, list, one } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import { keyNames, shortKeyIds } from "../keys/keys.ts";
import { type AuditFilter, type AuditRecord, listAudit, NamesFound, namesWith, noneMatch, showAudit } from "./audit.ts";
import {
  acceptFlaws,
  describeComparison,
  planPruning,
  requireAuditor,
  type Verified,
  verifyAudit,
} from "./audit-chain.ts";
import { auditKeys, proveAudit } from "./audit-proof.ts";
import { readCheckpoints } from "./log-checkpoints.ts";

function parseMonth(text: string): string {
  if (/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) return text;
  throw new Unfit("takes a month in UTC, such as 2026-10.");
}

const moment = (text: string) => parseMoment(text, Date.now());

export const filterInputs = {
  organization: ofOrganization("entries"),
  project: completed(input("--project <project>", "only entries of this project: ORG/PROJECT, or PROJECT"), "projects"),
  keyId: completed(input("--key <id>", "only entries of this key or trust, and changes of it"), "keysAndTrusts"),
  name: input("--name <part>", "only what concerns a variable, account or file with this in its name, in any case"),
  environment: choice("--env <env>", "only entries of this environment", environments),
  actor: input("--actor <actor>", "only what this person did, or a key or a trust with this name or id"),
  actions: choices("--action <list>", "only these actions", auditActions),
  sinceAt: input("--since <moment>", "24h (ago), 2026-01-31 (its start in UTC), or 2026-01-31T12:00Z", moment),
  beforeAt: input("--until <moment>", "only entries from before this moment, in the same forms", moment),
};

/** A list is held in memory as a whole, and the next page of an export is not read before the last one is written. */
export const limitMax = 10_000;

const parseLimit = wholeNumber(1, limitMax, ": `audit export` has no end");

/** @throws Problem if no moment can match */
export function requireSpan({ sinceAt, beforeAt }: Pick<AuditFilter, "sinceAt" | "beforeAt">): void {
  if (sinceAt === undefined || beforeAt === undefined || beforeAt > sinceAt) return;
  throw usageProblem("--until is not after --since.");
}

/** The damaged segments of which a list shows nothing. Only an operator is told: one may hold entries of others. */
export class Damaged {
  readonly #isTold: boolean;
  readonly #names = new Set<string>();

  constructor({ rights }: Pick<AdminContext, "rights">) {
    this.#isTold = rights === "operator";
  }

  /** @returns whether it is a new one that they are told of */
  readonly note = ({ lane, firstSeq }: Segment): boolean => {
    const before = this.#names.size;
    if (this.#isTold) this.#names.add(`${lane}:${firstSeq}`);
    return this.#names.size > before;
  };

  /** How a command ends that passed over some. */
  get problem(): Problem | undefined {
    if (this.#names.size === 0) return undefined;
    const parts = counted(this.#names.size, "part of the audit is", "parts of the audit are");
    const words = `${parts} damaged and not searched: ${listed([...this.#names])}. \`audit verify\` says what was changed.`;
    return new Problem(exits.unavailable, "unread", words);
  }
}

/** Says that a list of entries was cut, unless the caller chose its limit. */
export function earlierMatch({ limit }: { readonly limit?: number | undefined }): string {
  return limit === undefined ? "Earlier entries match, too: --until or --limit lists them." : "";
}

export const listSome = operation({
  path: "audit list",
  about: "List who read which values, and what people changed, oldest first.",
  examples: [
    "keyhole audit list --org acme --since 24h",
    "keyhole audit list --name STRIPE_KEY --env production --since 7d",
    "keyhole audit list --follow",
  ],
  right: "audit",
  inputs: {
    ...filterInputs,
    limit: input("--limit <count>", `only the newest entries (default: 100, at most ${limitMax})`, parseLimit),
    wide,
  },
  run: async (admin, filter) => {
    const damaged = new Damaged(admin);
    const [entries, earlier = ""] = (await listAudit(admin, filter, damaged.note)).with(earlierMatch(filter));
    const none = entries.length > 0 ? "" : await noneMatch(admin, filter);
    const ends = damaged.problem;
    const names = filter.name === undefined ? "" : new NamesFound(filter.name).add(entries).sentence;
    const sentence = [names, earlier].filter(Boolean).join("\n");
    // As many as fit 80 columns whatever the entries are: up to the names.
    return { ...list(entries, await columnsOf(admin, filter.name), none, 5), sentence, ...(ends && { ends }) };
  },
});

export const show = operation({
  path: "audit show",
  about: "Show one entry whole, with every name.",
  examples: ["keyhole audit show commands:12"],
  right: "audit",
  inputs: { entry: input("<entry>", "LANE:NUMBER, as `audit list --wide` shows it") },
  run: async (admin, { entry }) => one(await showAudit(admin, entry), await wholeColumns(admin)),
});

export const verify = operation({
  path: "audit verify",
  about: "Verify the chain and say where it breaks.",
  examples: [
    "keyhole audit verify --checkpoint /var/log/keyhole.log",
    "kubectl logs deploy/keyhole | keyhole audit verify --checkpoint -",
  ],
  right: "audit",
  progress: ["Verifying", "entries"],
  inputs: {
    checkpoint: file("--checkpoint <file>", "the server's log, or - for stdin; also finds missing newest entries", {
      bytesMax: Number.POSITIVE_INFINITY,
    }),
    month: input("--month <month>", "only this month, such as 2026-10, once it is sealed; and the tree", parseMonth),
    accept: {
      ...input("--accept <names>", "record that these losses or rows are known: LANE:FIRST-LAST, key:ID, …", parseList),
      isLocal: true,
    },
  },
  run: async (admin, { checkpoint, month, accept = [] }, { report }) => {
    requireAuditor(admin);
    if (month !== undefined && checkpoint !== undefined)
      throw usageProblem("--checkpoint is about the ends of lanes: give it without --month.");
    const checkpoints = checkpoint === undefined ? undefined : await readCheckpoints(checkpoint);
    const verified = await verifyAudit(admin, checkpoints, (entries) => report(entries), month);
    const found = accept.length > 0 ? await acceptFlaws(admin, verified, accept) : verified;
    if (found.flaws.length > 0) throw flawed(found, { checkpoint, month });
    // A database that was put back is in order, and lacks what this host or a witness has seen.
    await admin.checkpoint.look(admin.database, false);
    admin.checkpoint.requireGoingOn();
    const compared = admin.checkpoint.comparisons;
    const { entries, lanes, accepted, sealed } = found;
    const which = sealed === undefined ? "Every entry" : `Every entry of ${sealed.month}`;
    const against =
      checkpoint !== undefined ? `, compared with ${counted(checkpoints?.length ?? 0, "checkpoint")} of the log` : "";
    const sentences = [
      ...(sealed?.month === month ? [] : [`The entries of ${month} are in ${sealed?.month}.`]),
      `${which} is unchanged: ${counted(entries, "entry", "entries")} in ${counted(lanes, "lane")}${against}.${knownLosses(found)}`,
      ...compared.map(describeComparison),
      ...(checkpoint === undefined && month === undefined
        ? ["Only --checkpoint with the server's log shows whether entries are missing that no notary has signed."]
        : []),
    ];
    const document = {
      verified: true,
      entries,
      lanes,
      checkpoints: checkpoints?.length ?? 0,
      accepted,
      sealed,
      compared,
    };
    const missing = compared.filter(({ reason }) => reason !== undefined).map(describeComparison);
    if (missing.length > 0) {
      const lines = new Set([...missing, ...sentences]);
      const options = { document: { ...document, verified: false } };
      throw new Problem(exits.failed, "audit_not_compared", [...lines].join("\n"), options);
    }
    return done(document, sentences.join("\n"));
  },
});

export const prune = operation({
  path: "audit prune",
  about: "Delete the entries of whole months that are old enough. The rest can still be verified.",
  examples: ["keyhole audit prune --keep 800d"],
  right: rightTo("audit.prune"),
  asks: "needs --yes",
  isLong: true,
  inputs: {
    keepMs: input("--keep <duration>", "the least time to keep entries (default: 400d)", parseDuration),
    force: flag("--force", "also delete entries that do not verify"),
  },
  plan: async (admin, { keepMs = 400 * dayMs, force }) => {
    const plan = await planPruning(admin, keepMs, force);
    if (!("apply" in plan)) throw flawed(plan, { more: ["Nothing was deleted; --force deletes it anyway."] });
    const { keptFromAt, entries } = plan.pruned;
    const which = force ? "audit entries, even those that do not verify," : "audit entries";
    const deed = `delete all ${which} from before ${formatTime(keptFromAt).slice(0, 10)}`;
    const apply = async () => {
      await plan.apply();
      const gone = counted(entries, "entry", "entries");
      return done(plan.pruned, `Deleted ${gone} from before ${formatTime(keptFromAt).slice(0, 10)}.`);
    };
    return { deed, seen: { keptFromAt, entries }, document: plan.pruned, apply };
  },
});

export const key = operation({
  path: "audit key",
  about: "Print the verifier key of the audit, with which others check proofs. The newest comes first.",
  examples: ["keyhole audit key > keyhole.pub"],
  right: "audit",
  inputs: {},
  run: async (admin) => {
    const keys = await auditKeys(admin);
    return { document: { keys }, shows: { text: keys.map((one) => `${one}\n`).join("") } };
  },
});

export const prove = operation({
  path: "audit prove",
  about: "Prove that an entry was recorded and is there: a line of JSON that `audit check` checks without this server.",
  examples: ["keyhole audit prove 0199a3c4-5b1e-7c53-9d0f-3f6f5ab1c2d4:12 --out deploy.proof"],
  right: "audit",
  inputs: {
    receipt: input("<receipt>", "LANE:NUMBER or LANE:FIRST-LAST, as a receipt has it"),
    out,
  },
  run: async (admin, { receipt }) => {
    const proofs = await proveAudit(admin, receipt);
    return {
      document: { receipt },
      shows: {
        secret: proofs.map(jsonLine).join(""),
        what: `The proof of ${receipt}`,
        field: { proofs },
        whereItWent: (path) => (path === undefined ? "" : `Wrote the proof of ${receipt} to ${path}.`),
      },
    };
  },
});

/** @param part - names with it come first in an entry that has many */
export async function columnsOf(admin: AdminContext, part?: string): Promise<Columns<AuditRecord>> {
  const fits = part === undefined ? () => false : namesWith(part);
  const [short, names] = [await shortKeyIds(admin), await keyNames(admin)];
  return {
    TIME: (one) => ({ at: one.time }),
    // The word "key" or "trust" comes first, so that no name of a key looks like a person's.
    ACTOR: ({ actor }) =>
      actor.type === "person" ? personText(actor) : `${actor.type} ${excerpt(names.get(actor.id) ?? short(actor.id))}`,
    ACTION: (one) => one.action,
    WHERE: (one) => [one.project, one.environment].filter(Boolean).join("/") || "-",
    NAMES: ({ names }) => ({ words: names.toSorted((a, b) => Number(fits(b)) - Number(fits(a))) }),
    KEY: ({ actor }) => (actor.type === "person" ? "-" : short(actor.id)),
    REQUEST: (one) => one.requestId || "-",
    ORG: (one) => one.organization ?? "-",
    COUNT: (one) => one.count,
    CLIENT: (one) => one.clientAddress || "-",
    "USER AGENT": (one) => ({ name: one.userAgent || null }),
    ENTRY: ({ lane, seq }) => `${lane}:${seq}`,
    TOKEN: (one) => (one.token ? `${one.token.sub} ${one.token.run}`.trimEnd() : "-"),
  };
}

/** One entry, with the ids that a list shortens. */
export async function wholeColumns(admin: AdminContext): Promise<Columns<AuditRecord>> {
  return {
    ...(await columnsOf(admin)),
    KEY: ({ actor }) => (actor.type === "person" ? "" : actor.id),
    "USER AGENT": (one) => one.userAgent,
    ADDED: ({ added = [] }) => ({ words: added }),
    CHANGED: ({ changed = [] }) => ({ words: changed }),
    DELETED: ({ deleted = [] }) => ({ words: deleted }),
    CANARIES: ({ canaries = [] }) => ({ words: canaries }),
  };
}

/**
 * Makes a Problem of the flaws. Its document has the first one, and a list of all.
 * @param options - the log that was given, and sentences of the caller
 */
function flawed(
  found: Verified,
  {
    checkpoint,
    month,
    more = [],
  }: { checkpoint?: ReadInput | undefined; month?: string | undefined; more?: readonly string[] },
): Problem {
  const flaws = found.flaws.map(({ seals: _, ...flaw }) => flaw);
  const [first] = flaws;
  const { moreFlaws, accepted } = found;
  const document = { verified: false, ...first, flaws, moreFlaws, accepted };
  const log = checkpoint && (checkpoint.name === "stdin" ? "-" : checkpoint.name);
  const accepting = (accept: readonly string[], words: string) =>
    accept.length > 0 ? [words, `  ${commandLine(verify, { checkpoint: log, month, accept })}`] : [];
  // As `acceptFlaws` judges them.
  const changed = new Set(found.flaws.flatMap(({ name, seals }) => (seals === undefined ? name : [])));
  const acceptable = found.flaws.filter(({ name }) => !changed.has(name));
  const [rows = [], losses = []] = [true, false].map((isState) => [
    ...new Set(acceptable.flatMap(({ what, name }) => ((what === "state") === isState ? name : []))),
  ]);
  const lines = [
    ...flaws.map(({ sentence }) => sentence),
    ...(moreFlaws > 0 ? [`There are ${moreFlaws} more flaws.`] : []),
    ...accepting(rows, "If all of these rows are as they should be, record that:"),
    ...more,
    ...accepting(losses, "If you know of these losses, such as from a failover, record that:"),
  ];
  const message = lines.join("\n") + knownLosses(found);
  return new Problem(exits.failed, `audit_${first?.what}`, message, { document });
}

function knownLosses({ accepted }: Verified): string {
  return accepted.length > 0 ? `\nAccepted as known losses: ${accepted.map(gapName).join(", ")}.` : "";
}
