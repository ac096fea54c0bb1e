import type { Proof } from "./proof.ts";

const waits = "src/serve/api/waits.ts";
const unit = "unit/told";
const integration = "integration/told";
const looks = "src/client/looks.ts";
const wire = "src/client/wire.ts";
const client = "unit/client";

/** Reads that wait for a change, and the clients that ask for them. */
export const told: readonly Proof[] = [
  {
    promise: "A key has at most 64 waits",
    edits: [[waits, "ofKey >= ofKeyMax || ", ""]],
    fails: [
      integration,
      "is not waited for by the 65th request of a key, which does not say that it would have waited",
    ],
    hangs: true,
  },
  {
    promise: "A process has at most 10,000 waits",
    edits: [[waits, "this.#underWay >= waitsMax || ", ""]],
    fails: [unit, "10,000 wait in a process, and the next one is answered at once"],
    hangs: true,
  },
  {
    promise: "A server that stops ends the waits",
    edits: [[waits, "    for (const { wake } of this.#waits) wake();\n  };", "  };"]],
    fails: [unit, "a server that stops ends its waits at once, whatever looks find"],
    hangs: true,
  },
  {
    promise: "No wait begins at a server that stops",
    edits: [[waits, "this.#underWay >= waitsMax || this.#isEnding) {", "this.#underWay >= waitsMax) {"]],
    fails: [integration, "ends with its answer and the connection once the server stops, and none begins then"],
  },
  {
    promise: "A wait ends with its connection if the server stops",
    edits: [[waits, '        if (this.#isEnding) response.headers.set("Connection", "close");\n', ""]],
    fails: [integration, "ends with its answer and the connection once the server stops"],
  },
  {
    promise: "A wait whose caller has left is forgotten",
    edits: [[waits, '    signal.addEventListener("abort", wake, { once: true });\n', ""]],
    fails: [unit, "the database is asked while somebody waits, and not before or after"],
    hangs: true,
  },
  {
    promise: "A wait is judged again within ten seconds, whatever moved",
    edits: [[waits, " || nowMs - one.judgedAtMs >= judgedMsMax);", " || nowMs - judgedMsMax < -nowMs);"]],
    fails: [integration, "finds within ten seconds what no command did"],
    hangs: true,
  },
  {
    promise: "A wait that ends in values pays for them",
    edits: [
      [waits, "const decision = paid.get(bucket) ?? buckets", 'const decision = paid.get("metadata") ?? buckets'],
    ],
    fails: [integration, "pays one metadata token and one of its own, and is on record, once"],
  },
  {
    promise: "A wait pays once, however often it is judged",
    edits: [[waits, "const decision = paid.get(bucket) ?? buckets", "const decision = buckets"]],
    fails: [integration, "is a 304 after its seconds, for one metadata token and without an entry"],
  },
  {
    promise: "The database is asked for changes only while somebody waits",
    edits: [[waits, "      if (this.#waits.size === 0) break;\n", ""]],
    fails: [unit, "the database is asked while somebody waits, and not before or after"],
  },
  {
    promise: "A change is not missed that comes while a request is judged",
    edits: [[waits, "    const { keyId } = exchange;\n", "    const { keyId } = exchange;\n    end = this.#end;\n"]],
    fails: [unit, "a change is not missed that comes while a request is judged for the first time"],
    hangs: true,
  },
  {
    promise: "Waits are judged in steps",
    edits: [[waits, "const stepSize = 64;", "const stepSize = 64_000;"]],
    fails: [unit, "thousands are judged in steps"],
  },
  {
    promise: "A look that fails ends no wait",
    edits: [[waits, "        continue; // a database", "        break; // a database"]],
    fails: [unit, "a look that fails ends no wait"],
    hangs: true,
  },
  {
    promise: "A database that is away ends no wait",
    edits: [[waits, "if (isLast || !mayPass) throw error;", "throw mayPass ? error : error;"]],
    fails: [unit, "a database that is away ends no wait, and another refusal does"],
  },
  {
    promise: "A wait ends in time if the database does not answer",
    edits: [
      [
        waits,
        "await (isLast ? lastOf(judged, own.isValueRead) : judged);",
        "await (isLast && !lastOf ? judged : judged);",
      ],
    ],
    fails: [unit, "a wait ends in time if nothing answers its last judgement"],
    hangs: true,
  },
  {
    promise: "What a wait began to read at its end is answered",
    edits: [[waits, "if (error === tooLate && isValueRead()) return judged;", "void isValueRead;"]],
    fails: [unit, "a wait ends in time if nothing answers its last judgement, but what it began to read is answered"],
  },
  {
    promise: "A wait is no slow request",
    edits: [[waits, "        exchange.startedAtMs = performance.now(); // a wait is no slow request\n", ""]],
    fails: [unit, "neither a clock that steps nor a wait counts as the time that an answer took"],
  },
  {
    promise: "A server that says it waited is asked once a second at most",
    edits: [[looks, "Math.max(beganAtMs + soonMsMin - nowMs(), 0)", "0"]],
    fails: ["unit/watch", "asks a server that waits again at once, but never sooner than a second after it asked"],
  },
  {
    promise: "A server that does not wait is asked no more often than it was",
    edits: [[looks, "isSoon = found.waited || mayWait;", "isSoon = found.waited || mayWait || retryAfter === 0;"]],
    fails: ["unit/watch", "asks a server soon that may wait, and others after its interval"],
  },
  {
    promise: "A wait that was cut is not asked for again",
    edits: [[looks, "waitS = Math.min(waitS, cutMsMin / 1000);", "waitS = Math.min(waitS, cutMsMin);"]],
    fails: ["unit/watch", "lets an answer wait for less after a wait that was cut"],
  },
  {
    promise: "A proxy that cuts a wait makes no look fail",
    edits: [[wire, "status === 401 || /^(?:timeout|unreachable|http_5\\d\\d)$/.test(code)", "status === 401"]],
    fails: [client, "is asked again without a wait after a gateway's refusal"],
  },
  {
    promise: "A token that ends while an answer waits is no revocation",
    edits: [[wire, "status === 401 || /^(?:timeout", "status === 499 || /^(?:timeout"]],
    fails: [client, "is asked again without a wait after a token that ended meanwhile"],
  },
  {
    promise: "A wait does not use up a request's own time",
    edits: [[wire, "answerMs + (waitS ?? 0) * 1000;", "answerMs;"]],
    fails: [client, "has its seconds beside those that every request has"],
  },
  {
    promise: "A watch that is closed waits for nothing",
    edits: [["src/client/npm/follow.ts", "waitS, signal });", "waitS });"]],
    fails: ["integration/fake", "and does not wait on after it is closed"],
  },
  {
    promise: "The reader for Python asks a server that waits once a second at most",
    edits: [["docs/clients/keyhole.py", "max(began + 1 - seen, 0)", "0"]],
    fails: ["blackbox/clients", "outlasts what happens to those that wait, and asks once a second at most"],
  },
  {
    promise: "A server's Retry-After does not make the reader for Python keep values that are too old",
    edits: [["docs/clients/keyhole.py", "min(error.retry_after or 0, left)", "error.retry_after or 0"]],
    fails: ["blackbox/clients", "ends once its values are too old, whatever Retry-After says"],
    hangs: true,
  },
  {
    promise: "What a look that failed had read is compared before the next wait",
    edits: [["src/client/recipe.ts", "hasFailed ? undefined : waitS", "waitS"]],
    fails: ["unit/watch", "puts changed files in place first, and loses no change to a look that fails"],
    hangs: true,
  },
  {
    promise: "Our proxies let an answer wait for a minute",
    edits: [["docs/deploy/nginx.conf", "proxy_read_timeout 65s;", "proxy_read_timeout 20s;"]],
    fails: ["blackbox/tls", "a read waits for a change, and may do so for a minute"],
  },
];
