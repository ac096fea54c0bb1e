/** A token bucket: `capacity` tokens when full, and one more every `intervalUs` whole microseconds until then. */
export type Policy = {
  /** As clients see it in the RateLimit headers: an HTTP structured-field string, so printable ASCII without `"` or `\`. */
  readonly name: string;
  readonly capacity: number;
  readonly intervalUs: number;
};

/** A policy whose `RateLimit-Policy` field is made once and not per response. */
export type AnnouncedPolicy = Policy & { readonly announcement: string };

/** The buckets of a recognized key. */
export type BucketName = "metadata" | "value" | "content";

/** The four policies (CONTRACT, limits). */
export const policies: Readonly<Record<BucketName | "unrecognized", AnnouncedPolicy>> = {
  metadata: announced({ name: "metadata", capacity: 120, intervalUs: 500_000 }),
  value: announced({ name: "value", capacity: 30, intervalUs: 2_000_000 }),
  content: announced({ name: "file-content", capacity: 1000, intervalUs: 1_000_000 }),
  unrecognized: announced({ name: "unrecognized", capacity: 10, intervalUs: 6_000_000 }),
};

/** What a bucket says to one call. `remaining` is how many more would pass in the same moment. */
export type Decision =
  | { readonly allowed: true; readonly fullAtUs: number; readonly remaining: number }
  | { readonly allowed: false; readonly retryAfterUs: number };

/**
 * Takes one token. A bucket is one number, the moment it is full again; `undefined` is a full bucket, so a bucket
 * whose moment has passed can be forgotten. Whole microseconds throughout: fractions of a token drift.
 *
 * @param fullAtUs - monotonic µs, from this bucket's last allowed call
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

/** `Retry-After` in whole seconds: rounded up, so that a client who waits as told does pass, and at least 1. */
export function retryAfterS(retryAfterUs: number): number {
  return Math.max(1, Math.ceil(retryAfterUs / 1_000_000));
}

export type RateLimitHeaders = { readonly "RateLimit-Policy": string; readonly RateLimit: string };

/**
 * The two header fields of the IETF draft, as in `"value";q=30;w=60` and `"value";r=29;t=2`. Here `t` is the whole
 * seconds until the bucket is full again, or after a refusal until one call will pass, the same as `Retry-After`.
 *
 * @param nowUs - the moment given to {@link take} for this decision
 * @see https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
 */
export function rateLimitHeaders(policy: AnnouncedPolicy, decision: Decision, nowUs: number): RateLimitHeaders {
  const standing = decision.allowed
    ? `r=${decision.remaining};t=${Math.ceil((decision.fullAtUs - nowUs) / 1_000_000)}`
    : `r=0;t=${retryAfterS(decision.retryAfterUs)}`;
  return { "RateLimit-Policy": policy.announcement, RateLimit: `"${policy.name}";${standing}` };
}

/** The window `w` is the time in which an empty bucket fills: within it `q` calls pass, on average for ever. */
function announced(policy: Policy): AnnouncedPolicy {
  const windowS = Math.ceil((policy.capacity * policy.intervalUs) / 1_000_000);
  return { ...policy, announcement: `"${policy.name}";q=${policy.capacity};w=${windowS}` };
}
