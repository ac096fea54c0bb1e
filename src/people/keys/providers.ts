import { Refused } from "../../core/refused.ts";
import type { PerJob, Terms } from "../../serve/access/token.ts";

/* What Keyhole knows about token issuers. An issuer that is not in this table needs the claim `sub`. */

/** Who issues tokens, recognized by the issuer's address. */
type TokenProvider = {
  readonly name: string;
  readonly isAt: (address: URL) => boolean;
  /** How its subjects begin. Others use the same form: Forgejo's is GitHub's. */
  readonly subject?: RegExp;
  /** At least one of these claims is needed. Only the name in `sub` could be registered again by somebody else. */
  readonly pins: readonly string[];
  /** As `NAME=VALUE`: what only the tokens of one run have, or of the jobs that one person started. */
  readonly passing?: RegExp;
  /** What such a claim is instead, if no run is named. */
  readonly instead?: string;
  /** A claim that binds a branch. A cloud has none: its tokens are a machine's. */
  readonly binding?: string;
  /** Claims that narrow it more: a deployment environment, then the workflow at a commit. */
  readonly safer?: string;
  /** How a stranger can have a token that looks like one of ours, and how to prevent it. */
  readonly strangers?: string;
  /** Which claims name a job, the first that a token has; `jti` unless it says otherwise. Null if none does. */
  readonly job?: PerJob["claims"] | null;
  /** How old a token may be, if machines are given the same one for longer than ten minutes. */
  readonly ageS?: number;
};

const providers: readonly TokenProvider[] = [
  {
    name: "GitHub",
    isAt: ({ hostname, pathname }) => /^token\.actions\./.test(hostname) || pathname === "/_services/token",
    subject: /^repo:/,
    pins: ["repository_id", "repository_owner_id"],
    passing: /^(?:run_id|run_number|run_attempt|check_run_id)=/,
    binding: "ref=refs/heads/main",
    safer: "environment=production (a deployment environment with reviewers), job_workflow_ref=…@COMMIT",
    job: [["check_run_id"], ["run_id", "run_attempt"]],
  },
  {
    name: "GitLab",
    isAt: ({ hostname }) => /(?:^|[.-])gitlab(?:[.-]|$)/.test(hostname),
    subject: /^project_path:/,
    pins: ["project_id", "namespace_id"],
    passing: /^(?:pipeline_id|job_id)=/,
    binding: "ref_path=refs/heads/main with ref_protected=true",
    safer: "environment=production with environment_protected=true",
    job: [["job_id"]],
  },
  {
    name: "Buildkite",
    isAt: ({ hostname }) => /(?:^|\.)buildkite\.com$/.test(hostname),
    subject: /^organization:[^:]*:pipeline:/,
    pins: ["organization_id"],
    passing: /^(?:sub=.*:commit:|build_id=|build_number=|job_id=)/,
    binding: "build_branch=main",
    job: [["job_id"]],
    strangers:
      "If the pipeline builds pull requests of forks, let Buildkite put their owner before the branch: otherwise a fork's branch main has the claim build_branch=main.",
  },
  {
    name: "Bitbucket",
    isAt: ({ hostname }) => hostname === "api.bitbucket.org",
    pins: ["repositoryUuid", "workspaceUuid"],
    passing: /^(?:sub|pipelineUuid|stepUuid)=/,
    binding: "branchName=main",
    safer: "deploymentEnvironmentUuid=…",
    job: [["stepUuid"]],
  },
  {
    name: "CircleCI",
    isAt: ({ hostname }) => hostname === "oidc.circleci.com",
    pins: ["oidc.circleci.com/project-id"],
    passing: /^(?:sub=.*\/user\/|oidc\.circleci\.com\/(?:pipeline|workflow|job)-id=)/,
    binding: "oidc.circleci.com/vcs-ref=refs/heads/main",
    job: [["oidc.circleci.com/job-id"]],
  },
  {
    name: "HCP Terraform",
    isAt: ({ hostname }) => hostname === "app.terraform.io",
    subject: /^organization:[^:]*:project:/,
    pins: ["terraform_workspace_id", "terraform_project_id", "terraform_organization_id", "sub"],
    passing: /^terraform_run_id=/,
    binding: "terraform_run_phase=apply",
  },
  {
    name: "AWS",
    isAt: ({ hostname }) => /\.tokens\.sts\.global\.api\.aws$/.test(hostname),
    pins: ["sub"],
    passing: /^sub=(?!arn:aws[a-z-]*:iam::\d{12}:role\/)/,
    instead: "the ARN of a role, arn:aws:iam::ACCOUNT:role/NAME, and not of a session or a user",
    strangers: "Whoever may assume this role can use the trust: give the machines a role of their own.",
  },
  {
    name: "Google",
    isAt: ({ hostname }) => hostname === "accounts.google.com",
    pins: ["sub"],
    passing: /^sub=(?!\d{1,40}$)/,
    instead: "a number, the uniqueId that `gcloud iam service-accounts describe EMAIL` prints",
    strangers: "Every machine with this service account can use the trust: give it one of its own, not the default.",
    job: null,
    ageS: 3600,
  },
  {
    name: "Azure",
    isAt: ({ hostname }) => hostname === "sts.windows.net" || hostname === "login.microsoftonline.com",
    pins: ["oid"],
    strangers: "Azure gives a machine the same token for up to a day, so a stolen one is taken for as long.",
    job: null,
    ageS: 86_400,
  },
];

/** Claims of any issuer that bind a deployment environment, or the phase of a run; `run_phase` stands in a subject. */
const deployments: ReadonlySet<string> = new Set([
  ...["environment", "environment_protected", "deploymentEnvironmentUuid", "terraform_run_phase", "run_phase"],
]);

/** Claims that bind one, or a branch or a tag. */
const bindings: ReadonlySet<string> = new Set([
  ...deployments,
  ...["ref", "ref_path", "ref_protected", "build_branch", "build_tag", "branchName", "oidc.circleci.com/vcs-ref"],
]);

/** What terms say of tokens. */
type Pinned = Pick<Terms, "issuer" | "claims">;

/** @throws Refused `invalid` unless the claims say whose tokens these are, in every run of a job */
export function requirePinned({ issuer, claims }: Pinned): void {
  const { name, pins, passing, instead } = providerAt(issuer) ?? { pins: ["sub"] };
  const options = claimOptions(pins);
  const wrong = Object.entries(claims).find(([claim, value]) => passing?.test(`${claim}=${value}`))?.[0];
  if (wrong !== undefined && instead !== undefined) {
    throw new Refused("invalid", `The claim ${wrong} of ${name} is ${instead}.`);
  }
  if (wrong !== undefined) {
    const reason = `The claim ${wrong} of ${name} names a run, a commit or a person, so it fits no later job.`;
    throw new Refused("invalid", `${reason} Use ${options} instead.`);
  }
  if (pins.some((pin) => pin in claims)) return;
  const why = name === undefined ? "" : ` Names can be registered again by somebody else, ids cannot.`;
  throw new Refused("invalid", `${name ?? "This issuer"} needs ${options}, to say whose tokens these are.${why}`);
}

/**
 * How often a job of a new trust may read; undefined for as often as it likes.
 * @param asked - by default, 10 for a CI system of the table
 * @throws Refused `invalid` if the issuer's tokens name no job
 */
export function requirePerJob(
  { issuer, claims }: Pinned,
  asked: ReadsPerJob | undefined = providerAt(issuer)?.binding === undefined ? undefined : readsByDefault,
): PerJob | undefined {
  if (asked === undefined || asked === "unlimited") return undefined;
  const spiffe = claims["sub"]?.startsWith("spiffe:") ? { name: "SPIFFE", job: null } : undefined;
  const { name, job = [["jti"]] } = providerAt(issuer) ?? spiffe ?? {};
  if (job !== null) return { reads: asked, claims: job };
  const words = `Tokens of ${name} name no job, so the reads of one cannot be counted: leave out --reads-per-job.`;
  throw new Refused("invalid", words);
}

/** How old a token of this issuer may be; undefined for ten minutes. */
export function ageOf(issuer: string): number | undefined {
  return providerAt(issuer)?.ageS;
}

/** A bound, or none. */
export type ReadsPerJob = number | "unlimited";
const readsByDefault = 10;

/** What a person should know of claims that are taken. */
export function claimWarnings(terms: Pinned): string[] {
  return [...nameWarnings(terms), ...bindingWarnings(terms)];
}

/** If the subject is all that says whose tokens these are, its names may be registered again. */
function nameWarnings({ issuer, claims }: Pinned): string[] {
  const { name, pins = [] } = providerAt(issuer) ?? providerLike(claims["sub"]) ?? {};
  const ids = pins.filter((pin) => pin !== "sub");
  if (ids.length === 0 || ids.some((id) => id in claims)) return [];
  const form = `The claim sub has the form of ${name}'s, in which names can be registered again by somebody else.`;
  return [`${form} If the issuer's tokens have an id, give that too: ${claimOptions(ids)}.`];
}

function bindingWarnings({ issuer, claims }: Pinned): string[] {
  const provider = providerAt(issuer) ?? providerLike(claims["sub"]);
  if (provider === undefined) return [];
  const { name, binding, safer, strangers } = provider;
  if (binding === undefined) return strangers === undefined ? [] : [strangers];
  const bound = [
    ...Object.keys(claims),
    ...(/:(ref|environment|run_phase):/.exec(claims["sub"] ?? "")?.slice(1) ?? []),
  ];
  const reason = "No claim binds a branch or a deployment environment: every job may use this trust, on any branch.";
  const isBound = bound.some((claim) => bindings.has(claim));
  const isDeployment = bound.some((claim) => deployments.has(claim));
  const branch = "Only a branch limits which jobs may use this trust: anyone who may push to it can change the job.";
  const event = claims["event_name"];
  const isUnknown = name === "GitHub" && event !== undefined && !githubEvents.has(event);
  const workflow = claims["job_workflow_ref"] ?? "";
  const at = workflow.slice(workflow.indexOf("@") + 1);
  const change = ", a branch or a tag: what the workflow does can change. Name a commit.";
  return [
    ...(isBound
      ? []
      : [`${reason} Narrow it with a claim such as ${safer ? `${safer} or, least of all, ` : ""}${binding}.`]),
    ...(safer && isBound && !isDeployment && !isAtCommit.test(workflow) ? [`${branch} Safer: ${safer}.`] : []),
    ...(workflow !== "" && !isAtCommit.test(workflow)
      ? [`The claim job_workflow_ref names ${JSON.stringify(at)}${change}`]
      : []),
    ...(isUnknown ? [`GitHub has no event ${JSON.stringify(event)}, so no token will fit the claim event_name.`] : []),
    ...(strangers === undefined || isDeployment ? [] : [strangers]),
  ];
}

const isAtCommit = /@[0-9a-f]{40}$/;

/** https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows */
const githubEvents: ReadonlySet<string> = new Set([
  ...["branch_protection_rule", "check_run", "check_suite", "create", "delete", "deployment", "deployment_status"],
  ...["discussion", "discussion_comment", "fork", "gollum", "image_version", "issue_comment", "issues", "label"],
  ...["merge_group", "milestone", "page_build", "public", "pull_request", "pull_request_review", "push", "schedule"],
  ...["pull_request_review_comment", "pull_request_target", "registry_package", "release", "repository_dispatch"],
  ...["status", "watch", "workflow_call", "workflow_dispatch", "workflow_run", "dynamic"],
]);

function providerAt(issuer: string): TokenProvider | undefined {
  const address = URL.parse(issuer);
  return address === null ? undefined : providers.find(({ isAt }) => isAt(address));
}

function providerLike(sub = ""): TokenProvider | undefined {
  return providers.find(({ subject }) => subject?.test(sub));
}

function claimOptions(names: readonly string[]): string {
  return names.map((name) => `--claim ${name}=…`).join(" or ");
}
