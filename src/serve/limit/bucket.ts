/** A token bucket: it holds at most `capacity` tokens and gains one every `intervalUs` whole microseconds. */
export type Policy = {
  /** Shown in the RateLimit headers, as a structured-field string: printable ASCII without `"` and `\`. */
  readonly name: string;
  readonly capacity: number;
  readonly intervalUs: number;
};

/** A policy with its `RateLimit-Policy` field, built once instead of for every response. */
export type AnnouncedPolicy = Policy & { readonly announcement: string };

/** The buckets of a recognized key. */
export type BucketName = "metadata" | "value" | "content";

export const policies: Readonly<Record<BucketName | "unrecognized", AnnouncedPolicy>> = {
  metadata: announced({ name: "metadata", capacity: 120, intervalUs: 500_000 }),
  value: announced({ name: "value", capacity: 30, intervalUs: 2_000_000 }),
  content: announced({ name: "file-content", capacity: 1000, intervalUs: 1_000_000 }),
  unrecognized: announced({ name: "unrecognized", capacity: 10, intervalUs: 6_000_000 }),
};

/** Whose bucket pays, and how many times as large as another key's that is; null: once. */
export type Payer = { readonly keyId: string; readonly rate: number | null };

/** A {@link Payer}, and from where it may be used; null: from everywhere. */
export type KnownPayer = Payer & { readonly from: string | null };

/**
 * The bucket of a key: `rate` times as many tokens, which come as many times as fast. An interval is in whole
 * microseconds and never too long, so that nobody waits who should not; it is at most 0.02 % too short.
 */
export function policyOf(bucket: BucketName, rate: number | null): AnnouncedPolicy {
  const policy = policies[bucket];
  if (rate === null) return policy;
  const { name, capacity, intervalUs } = policy;
  return larger.getOrInsertComputed(`${bucket} ${rate}`, () =>
    announced({ name, capacity: capacity * rate, intervalUs: Math.floor(intervalUs / rate) }),
  );
}

/** By bucket and rate: a seal was right for each of these rates. */
const larger = new Map<string, AnnouncedPolicy>();

/** The decision about one call. `remaining` is how many more calls would pass at the same moment. */
export type Decision =
  | { readonly allowed: true; readonly fullAtUs: number; readonly remaining: number }
  | { readonly allowed: false; readonly retryAfterUs: number };

/**
 * Takes one token. A bucket is one number, the moment it is full again; `undefined` is a full bucket, so a bucket
 * whose moment has passed can be forgotten. All times are whole microseconds, because fractions of a token would drift.
 * @param fullAtUs - monotonic µs, from the bucket's last allowed call
 * @param nowUs - monotonic µs, a whole number; a clock that steps back earns nothing
 * @see https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm
 */
export function take(fullAtUs: number | undefined, policy: Policy, nowUs: number): Decision {
  const nextFullAtUs = Math.max(fullAtUs ?? nowUs, nowUs) + policy.intervalUs;
  const spareUs = nowUs + policy.capacity * policy.intervalUs - nextFullAtUs;
  return spareUs < 0
    ? { allowed: false, retryAfterUs: -spareUs }
    : { allowed: true, fullAtUs: nextFullAtUs, remaining: Math.floor(spareUs / policy.intervalUs) };
}

/** `Retry-After` in whole seconds, at least 1. Rounded up, so that a client that waits so long passes. */
export function retryAfterS(retryAfterUs: number): number {
  return Math.max(1, Math.ceil(retryAfterUs / 1_000_000));
}

/**
 * The two header fields of the IETF draft, as in `"value";q=30;w=60` and `"value";r=29;t=2`. `t` is the seconds until
 * the bucket is full again or, after a refusal, `Retry-After`.
 * @param nowUs - the time that {@link take} was given for this decision
 * @see https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
 */
export function rateLimitHeaders(policy: AnnouncedPolicy, decision: Decision, nowUs: number) {
  const state = decision.allowed
    ? `r=${decision.remaining};t=${Math.ceil((decision.fullAtUs - nowUs) / 1_000_000)}`
    : `r=0;t=${retryAfterS(decision.retryAfterUs)}`;
  return { "RateLimit-Policy": policy.announcement, RateLimit: `"${policy.name}";${state}` };
}

/** An empty bucket fills within the window `w`, so `q` calls in `w` seconds is the sustained rate. */
function announced(policy: Policy): AnnouncedPolicy {
  const windowS = Math.ceil((policy.capacity * policy.intervalUs) / 1_000_000);
  return { ...policy, announcement: `"${policy.name}";q=${policy.capacity};w=${windowS}` };
}
