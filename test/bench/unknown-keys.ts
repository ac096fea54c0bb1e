/**
 * Presents ten million distinct, well-formed, unknown keys to the limiter of unrecognized keys as a request does (checksum,
 * peek, take), and fails if the process grows by 64 MiB or more:
 *
 *     bun test/bench/unknown-keys.ts [--count 10000000]
 */
import { parseArgs } from "node:util";
import { isWellFormedKey } from "../../src/access/api-key.ts";
import { UnrecognizedLimiter } from "../../src/limit/unrecognized.ts";
import { unknownKeySource } from "./keys.ts";

const growthMibMax = 64;
const { values } = parseArgs({ options: { count: { type: "string", default: "10000000" } } });
const count = Number(values.count);
if (!Number.isSafeInteger(count) || count < 1) {
  console.error("--count must be a whole number above 0");
  process.exit(2);
}

const rssMib = () => process.memoryUsage.rss() / 2 ** 20;
const nowUs = () => Math.floor(Bun.nanoseconds() / 1000);
const nextKey = unknownKeySource();

const beforeMib = rssMib();
console.log(`before     ${beforeMib.toFixed(1)} MiB`);
const limiter = new UnrecognizedLimiter();
const repeated = nextKey();
let peakMib = beforeMib;
let malformed = 0;
let refused = 0;
const beganAtUs = nowUs();
for (let i = 1; i <= count; i++) {
  const key = nextKey();
  if (!isWellFormedKey(key)) malformed++;
  if (!limiter.peek(key, nowUs()).allowed || !limiter.take(key, nowUs()).allowed) refused++;
  if (i % 65_536 === 0) peakMib = Math.max(peakMib, rssMib());
  if (i % Math.ceil(count / 10) === 0) console.log(`${String(i).padStart(9)}  ${rssMib().toFixed(1)} MiB`);
}
const tookS = (nowUs() - beganAtUs) / 1_000_000;
const afterMib = rssMib();
peakMib = Math.max(peakMib, afterMib);
const growthMib = peakMib - beforeMib;

// The table must still limit after the flood: one key is presented eleven times.
const passed = Array.from({ length: 11 }, () => limiter.take(repeated, beganAtUs + 3_600_000_000)).filter(
  (decision) => decision.allowed,
).length;

console.log(
  `after      ${afterMib.toFixed(1)} MiB, at most ${peakMib.toFixed(1)} MiB, growth ${growthMib.toFixed(1)} MiB`,
);
console.log(`limiter    ${refused} of ${count} distinct keys refused`);
console.log(`rate       ${Math.round(count / tookS)} keys/s, ${tookS.toFixed(1)} s, including making the keys`);

if (growthMib >= growthMibMax) {
  fail(`The process grew by ${growthMib.toFixed(1)} MiB; it must stay below ${growthMibMax} MiB.`);
}
if (malformed > 0) fail(`${malformed} keys were not well formed, so the measurement is invalid.`);
if (refused > 0) fail(`${refused} keys were refused that had never been presented before.`);
if (passed !== 10) fail(`One key presented 11 times passed ${passed} times instead of 10.`);

function fail(sentence: string): never {
  console.error(sentence);
  process.exit(1);
}
