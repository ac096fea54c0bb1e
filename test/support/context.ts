import { Writable } from "node:stream";
import type { CommandContext } from "../../src/cli/terminal/verb.ts";

/** What a command gets that has no environment and says nothing, except for what is named here. */
export function contextOf(own: Partial<CommandContext> = {}): CommandContext {
  return { env: {}, terminal: process, json: false, say: () => {}, flush: async () => {}, inherited: [], ...own };
}

/** A stream that hands on what is written to it. */
export function streamTo(take: (chunk: Uint8Array) => void): Writable {
  return new Writable({
    write: (chunk: Uint8Array, _, done) => {
      take(chunk);
      done();
    },
  });
}
