import { describe, expect, test } from "bun:test";
import { Fault, type FaultCode } from "../../src/core/fault.ts";
import { encodeFields } from "../../src/seal/associated-data.ts";
import {
  generationOf,
  open,
  orUndefined,
  overheadBytes,
  seal,
  sealWithChosenNonceForVectors,
} from "../../src/seal/envelope.ts";

const key = Buffer.alloc(32, 1);
const associatedData = Buffer.from("here");

describe("seal", () => {
  test("never uses a nonce twice", () => {
    const nonces = new Set(
      Array.from({ length: 10_000 }, () => seal(key, 1, associatedData, Buffer.of()).toString("hex", 6, 18)),
    );
    expect(nonces.size).toBe(10_000);
  });

  test("does not change its arguments", () => {
    const given = [Buffer.alloc(32, 1), Buffer.from("here"), Buffer.from("value")] as const;
    seal(given[0], 1, given[1], given[2]);
    expect(given).toEqual([Buffer.alloc(32, 1), Buffer.from("here"), Buffer.from("value")]);
  });

  test.each([-1, 1.5, 2 ** 32, Number.NaN])("refuses generation %p, which does not fit into 32 bits", (generation) => {
    expect(() => seal(key, generation, associatedData, Buffer.of())).toThrow(RangeError);
  });

  test.each([0, 16, 31, 33])("refuses a key of %p bytes", (length) => {
    expect(() => seal(Buffer.alloc(length), 1, associatedData, Buffer.of())).toThrow(RangeError);
  });

  test("refuses a nonce that is not 12 bytes", () => {
    expect(() => sealWithChosenNonceForVectors(Buffer.alloc(16), key, 1, associatedData, Buffer.of())).toThrow(
      RangeError,
    );
  });
});

describe("open", () => {
  test("reads a sealed value anywhere in a larger buffer", () => {
    const sealed = seal(key, 7, associatedData, Buffer.from("value"));
    const within = Buffer.concat([Buffer.alloc(3, 255), sealed, Buffer.alloc(3, 255)]).subarray(3, -3);
    expect(open(key, associatedData, within).toString()).toBe("value");
    expect(generationOf(within)).toBe(7);
    expect(open(key, associatedData, new Uint8Array(sealed)).toString()).toBe("value");
  });

  test("fails with one Fault that tells nothing of the key, the associated data, the value or the reason", async () => {
    const canary = "c4n4ry-value";
    const sealed = seal(key, 1, Buffer.from("c4n4ry-data"), Buffer.from(canary));
    const flipped = Buffer.from(sealed);
    flipped.writeUInt8(flipped.readUInt8(20) ^ 1, 20);
    const other = Buffer.alloc(32, "c4n4ry-key");
    const attempts: readonly [key: Buffer, associatedData: Buffer, sealed: Buffer][] = [
      [other, Buffer.from("c4n4ry-data"), sealed],
      [key, Buffer.from("c4n4ry-elsewhere"), sealed],
      [key, Buffer.from("c4n4ry-data"), flipped],
      [Buffer.alloc(5), Buffer.from("c4n4ry-data"), sealed],
    ];
    const faults = attempts.map((attempt) => faultOf(() => open(...attempt)));
    expect(new Set(faults.map((fault) => `${fault.code} ${fault.message}`)).size).toBe(1);
    for (const fault of faults) {
      expect(fault).toBeInstanceOf(Fault);
      expect(fault.cause).toBeUndefined();
      expect(Bun.inspect({ ...fault, message: fault.message })).not.toContain("c4n4ry");
    }
  });
});

test.each([
  ["too short", Buffer.alloc(overheadBytes - 1, 1)],
  ["of version 0", Buffer.alloc(overheadBytes)],
  ["of suite 2", Buffer.from([1, 2, ...Buffer.alloc(32)])],
])("generationOf refuses an envelope that is %s", (_, sealed) => {
  expect(faultOf(() => generationOf(sealed)).code).toBe("decryption_failed");
});

describe("associated data", () => {
  test.each([-1, 0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY])("has no encoding for the number %p", (number) => {
    expect(faultOf(() => encodeFields("set", number)).code).toBe("decryption_failed");
  });

  // In UTF-8 both halves become U+FFFD: two texts would have one encoding.
  test.each(["\ud83d", "\udd11", "a\ud83d\ud83d\udd11"])("has no encoding for half a surrogate pair", (text) => {
    expect(faultOf(() => encodeFields("set", text)).code).toBe("decryption_failed");
  });
});

test("what does not decrypt is undefined, and any other failure is thrown", () => {
  const failing = (code: FaultCode) => () =>
    orUndefined(() => {
      throw new Fault(code, "of a test");
    });
  expect(failing("decryption_failed")()).toBeUndefined();
  expect(failing("unavailable")).toThrow("of a test");
});

function faultOf(act: () => unknown): Fault {
  try {
    act();
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}
