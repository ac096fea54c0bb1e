import { isIP } from "node:net";
import { BoundedMap } from "./bounded-map.ts";

/*
 * Addresses as numbers of 128 bits, ranges of them, and who asks behind proxies. IPv4 is `::ffff:0:0/96` in IPv6, and
 * is IPv4 in whatever way it is written: no range of IPv6 has it.
 */

export type Address = { readonly text: string; readonly isIPv4: boolean; readonly bits: bigint };

/** Addresses that begin with the same bits, or those who come by the Unix socket. */
export type AddressRange = (Address & { readonly rest: bigint }) | typeof bySocket;

const bySocket = "unix";

/** Undefined if it is not an address. One with a zone means something only on its own machine, and is none either. */
export function parseAddress(text: string): Address | undefined {
  const host = `[${isIP(text) === 4 ? "::ffff:" : ""}${text}]`;
  const whole = isIP(text) === 0 ? undefined : URL.parse(`http://${host}`)?.hostname.slice(1, -1);
  if (whole === undefined) return undefined;
  const [before = [], after = []] = whole.split("::").map((part) => part.split(":").filter(Boolean));
  const groups = [...before, ...new Array<string>(8 - before.length - after.length).fill("0"), ...after];
  const bits = groups.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
  const isIPv4 = bits >> 32n === 0xffffn;
  return { text: isIPv4 ? [24n, 16n, 8n, 0n].map((at) => (bits >> at) & 0xffn).join(".") : whole, isIPv4, bits };
}

/**
 * A range such as `10.0.0.0/8`, `2001:db8::1` or `unix`. Undefined if it is none, has bits beyond its length, or is an
 * IPv4-mapped IPv6 range, whose length counts from another bit. Its text has its length, unless it is one address.
 */
export function parseRange(text: string): AddressRange | undefined {
  if (text === bySocket) return text;
  const [, first = "", length] = /^([^/]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? [];
  const address = parseAddress(first);
  if (address === undefined || (length !== undefined && address.isIPv4 && first.includes(":"))) return undefined;
  const size = address.isIPv4 ? 32 : 128;
  const rest = size - Number(length ?? size);
  const isFirst = rest >= 0 && BigInt.asUintN(rest, address.bits) === 0n;
  const { text: own } = address;
  return isFirst ? { ...address, text: rest === 0 ? own : `${own}/${size - rest}`, rest: BigInt(rest) } : undefined;
}

/** What is wrong with words that are no range. */
export const noRange =
  "is none, has bits set beyond its length, or is an IPv4-mapped IPv6 range (write the IPv4 range)";

function isWithin(address: Address | typeof bySocket, ranges: readonly AddressRange[]): boolean {
  return ranges.some((range) => {
    if (range === bySocket || address === bySocket) return range === address;
    return range.isIPv4 === address.isIPv4 && (range.bits ^ address.bits) >> range.rest === 0n;
  });
}

/** Whether a caller, as {@link callerOf} says, is in one of these ranges, which have commas between them. */
export function isFrom(caller: string, ranges: string): boolean {
  const [first = ""] = caller.split(" via ");
  const address = nearestOf(first);
  return address !== undefined && isWithin(address, rangesOf(ranges));
}

/** Each list is of a key whose seal was right, so strangers cannot fill it. */
const parsed = new BoundedMap<readonly AddressRange[]>(16_384, ({ length }) => length);

function rangesOf(text: string): readonly AddressRange[] {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const ranges = text.split(",").flatMap((one) => parseRange(one) ?? []);
  parsed.set(text, ranges);
  return ranges;
}

/** The peer of a socket, whose zone says nothing that a range has; empty: the Unix socket. */
function nearestOf(peer: string): Address | typeof bySocket | undefined {
  return peer === "" ? bySocket : parseAddress(peer.replace(/%.*/, ""));
}

/**
 * Who asks: the socket's peer, or behind trusted proxies the first address from the right of `X-Forwarded-For` that is
 * none of them, and the proxy that said so: `203.0.113.9 via 10.0.0.2`. A part that is not an address ends the search,
 * and so does the 32nd.
 *
 * @param peer - empty for a Unix socket
 * @param forwardedFor - all its lines, joined by commas
 */
export function callerOf(peer: string, forwardedFor: string | null, proxies: readonly AddressRange[]): string {
  const nearest = nearestOf(peer);
  if (nearest === undefined || !isWithin(nearest, proxies)) return peer;
  let caller = "";
  for (const part of (forwardedFor ?? "").split(",").reverse().slice(0, proxiesMax)) {
    const address = parseAddress(part.trim().replace(portOf, "$1$2"));
    if (address === undefined) break;
    caller = `${address.text} via ${peer || bySocket}`;
    if (!isWithin(address, proxies)) break;
  }
  return caller || peer;
}

/** A stranger may send some thousand addresses, each of which takes microseconds. */
const proxiesMax = 32;

/** Some proxies write the port of the connection, too. */
const portOf = /^\[(.*)\](?::\d+)?$|^([\d.]+):\d+$/;
