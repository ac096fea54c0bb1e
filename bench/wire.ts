/**
 * Counts what servers send to PostgreSQL, in messages of its protocol: what the notary and commands send is left out.
 * @see https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
export class Wire {
  /** Execute and Query messages. */
  statements = 0;
  /** Messages after which the sender waits for an answer: Sync, Flush and Query. */
  trips = 0;

  /** @returns what is shown the bytes of one connection, in order */
  readonly listen = (): ((bytes: Buffer) => void) => {
    let rest: Buffer = Buffer.alloc(0);
    let uses: "unknown" | "served" | "other" = "unknown";
    return (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      for (;;) {
        // Only the first message has no type.
        const typeBytes = uses === "unknown" ? 0 : 1;
        if (rest.length < typeBytes + 4) return;
        const length = typeBytes + rest.readUInt32BE(typeBytes);
        if (rest.length < length) return;
        const message = rest.subarray(0, length);
        rest = rest.subarray(length);
        const type = typeBytes === 0 ? "" : String.fromCharCode(message[0] as number);
        if (type === "") uses = /keyhole (notary|admin)\0/.test(message.toString("latin1")) ? "other" : "served";
        else if (uses === "served") this.#count(type);
      }
    };
  };

  #count(type: string): void {
    if (type === "E" || type === "Q") this.statements += 1;
    if (type === "S" || type === "H" || type === "Q") this.trips += 1;
  }
}
