import { expect, test } from "bun:test";
import { BlockList, isIPv4 } from "node:net";
import fc from "fast-check";
import { type AddressRange, callerOf, isFrom, parseAddress, parseRange } from "../../src/core/addresses.ts";

/* Ranges and callers against node's `BlockList`, and against a rule that is told the other way round. */

/** Few different ones, so that many are in a range. Each is as Keyhole writes it. */
const v4 = fc.tuple(fc.constantFrom(10, 11, 192), fc.nat(3), fc.nat(255)).map(([a, b, c]) => `${a}.0.${b}.${c}`);
const v6 = fc
  .tuple(fc.constantFrom("2001:db8", "fd00"), fc.integer({ min: 1, max: 0xfff }))
  .map(([net, last]) => `${net}::${last.toString(16)}`);
const anyAddress = fc.oneof(
  v4,
  v6,
  fc.ipV4(),
  fc.ipV6().map((one) => parseAddress(one)?.text ?? "::"),
);
const familyOf = (address: string) => (isIPv4(address) ? "ipv4" : "ipv6");

/** A range that has this address, by its length alone. */
const rangeOf = (address: string, length: number): string => {
  const size = isIPv4(address) ? 32 : 128;
  const bits = Math.min(length, size);
  const { bits: all = 0n } = parseAddress(address) ?? {};
  const own = BigInt.asUintN(size, all);
  const first = (own >> BigInt(size - bits)) << BigInt(size - bits);
  const groups = size === 32 ? [24n, 16n, 8n, 0n] : [112n, 96n, 80n, 64n, 48n, 32n, 16n, 0n];
  const text = groups.map((at) => (size === 32 ? (first >> at) & 0xffn : (first >> at) & 0xffffn));
  return `${size === 32 ? text.join(".") : text.map((one) => one.toString(16)).join(":")}/${bits}`;
};
const anyRange = fc
  .tuple(anyAddress, fc.constantFrom(0, 7, 8, 22, 24, 30, 32, 48, 64, 127, 128))
  .map(([one, length]) => rangeOf(one, length));
const parsed = (ranges: readonly string[]) => ranges.map((one) => parseRange(one) as AddressRange);

/** node's own list would find IPv4 in `::/0`, so each family has one. */
const isTrusted = (ranges: readonly string[]) => {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const range of ranges) {
    const [net = "", length] = range.split("/");
    if (range !== "unix") lists[familyOf(net)].addSubnet(net, Number(length), familyOf(net));
  }
  return (address: string) =>
    address === "" ? ranges.includes("unix") : lists[familyOf(address)].check(address, familyOf(address));
};

/** How a proxy, or a caller who lies to it, may write an address. */
const written = (address: string) =>
  isIPv4(address)
    ? fc.constantFrom(address, `::ffff:${address}`, `[::FFFF:${address}]`, ` ${address} `, `${address}:4711`)
    : fc.constantFrom(address, address.toUpperCase(), `[${address}]`, `[${address}]:4711`, `\t${address}`);
const noAddress = fc.constantFrom(
  "",
  "unknown",
  "_hidden",
  "10.0.0",
  "10.0.0.256",
  "fe80::1%eth0",
  "10.0.0.1/8",
  "\u00e9",
);
/** A part of the header, and the address that it is. */
const anyPart = fc.oneof(
  { weight: 6, arbitrary: anyAddress.chain((address) => written(address).map((text) => ({ text, address }))) },
  { weight: 1, arbitrary: noAddress.map((text) => ({ text, address: undefined })) },
);

test("the caller is the first from the right who is no trusted proxy, and what is no address ends the search", () => {
  let said = 0;
  fc.assert(
    fc.property(
      fc.oneof(anyAddress, fc.constant("")),
      fc.array(anyPart, { maxLength: 6 }),
      fc.array(fc.oneof({ weight: 4, arbitrary: anyRange }, { weight: 1, arbitrary: fc.constant("unix") }), {
        maxLength: 4,
      }),
      (peer, parts, ranges) => {
        const isProxy = isTrusted(ranges);
        const addresses = parts.map(({ address }) => address);
        const end = addresses.findLastIndex((one) => one === undefined || !isProxy(one));
        const caller = addresses[end] ?? addresses[end + 1];
        const expected = isProxy(peer) && caller !== undefined ? `${caller} via ${peer || "unix"}` : peer;
        if (expected !== peer) said++;
        const header = parts.length === 0 ? null : parts.map(({ text }) => text).join(",");
        expect(callerOf(peer, header, parsed(ranges))).toBe(expected);
      },
    ),
    { numRuns: 1000 },
  );
  expect(said).toBeGreaterThan(50);
});

test("a caller is in the ranges of a key as node's list says: also by a proxy, with a zone, and in 64 ranges", () => {
  let found = 0;
  fc.assert(
    fc.property(
      fc.oneof(anyAddress, fc.constant("")),
      fc.constantFrom("", " via 10.0.0.2", " via unix", "%eth0"),
      fc.array(fc.oneof({ weight: 9, arbitrary: anyRange }, { weight: 1, arbitrary: fc.constant("unix") }), {
        minLength: 1,
        maxLength: 64,
      }),
      (address, more, ranges) => {
        const caller = address === "" ? "" : `${address}${more}`;
        const expected = isTrusted(ranges)(address);
        if (expected) found++;
        expect([caller, ranges, isFrom(caller, ranges.join())]).toEqual([caller, ranges, expected]);
      },
    ),
    { numRuns: 1000 },
  );
  expect(found).toBeGreaterThan(50);
  expect(isFrom("no address", "0.0.0.0/0,::/0,unix")).toBe(false);
  expect(isFrom("10.0.0.1", "no range")).toBe(false);
});

test("at most 32 proxies are believed, however many addresses a caller writes", () => {
  const header = (proxies: number) => ["203.0.113.9", ...Array.from({ length: proxies }, () => "10.0.0.1")].join(",");
  expect(callerOf("10.0.0.2", header(31), parsed(["10.0.0.0/8"]))).toBe("203.0.113.9 via 10.0.0.2");
  for (const proxies of [32, 1600]) {
    expect(callerOf("10.0.0.2", header(proxies), parsed(["10.0.0.0/8"]))).toBe("10.0.0.1 via 10.0.0.2");
  }
});

test("an address has one spelling, and a range is one only if it begins with its first address", () => {
  fc.assert(
    fc.property(anyAddress, fc.nat(128), (address, length) => {
      expect(parseAddress(address)?.text).toBe(address);
      const size = isIPv4(address) ? 32 : 128;
      const own = `${address}/${length}`;
      const isOne = length <= size && rangeOf(address, length) === rangeOf(address, size).replace(/\d+$/, `${length}`);
      expect([own, parseRange(own) !== undefined]).toEqual([own, isOne]);
    }),
  );
  for (const text of [
    "",
    "10.0.0.0/",
    "10.0.0.0/08",
    "10.0.0.0/33",
    "::/129",
    "::ffff:10.0.0.0/104",
    "::ffff:10.0.0.0/8",
    "::FFFF:a00:0/32",
    "fe80::1%eth0",
    "Unix",
  ]) {
    expect([text, parseRange(text)]).toEqual([text, undefined]);
  }
  expect(parseRange("::ffff:10.0.0.1")).toEqual(parseRange("10.0.0.1") as AddressRange);
});
