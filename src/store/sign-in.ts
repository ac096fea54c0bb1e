import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";

/** What a server may do wrong while somebody signs in, by the code of the error: words after its name. */
export const signInFailures = {
  SIGN_IN_CLEAR:
    "asks for the password in a form that others can read or guess, on a way that is not verified: nothing was sent. Use sslmode=verify-full, or scram-sha-256 in its pg_hba.conf.",
  SIGN_IN_UNASKED:
    "asks for no password, on a way that is not verified, so anybody may be there. Use sslmode=verify-full, or scram-sha-256 in its pg_hba.conf; or take the password out of DATABASE_URL.",
  SIGN_IN_FEW_ROUNDS:
    "asks for fewer than 4,096 rounds of SCRAM, on a way that is not verified, so the password was not used: raise scram_iterations there, and set the password again; or use sslmode=verify-full.",
  SIGN_IN_ROUNDS:
    "asks for more than 600,000 rounds of SCRAM, so the password was not used: lower scram_iterations there, and set the password again.",
  SIGN_IN_METHOD:
    "asks for a way to sign in that Keyhole does not know: it knows scram-sha-256, md5 and password of pg_hba.conf.",
  SIGN_IN_PROOF: "cannot prove that it knows the password: it is not the server that DATABASE_URL means.",
  SIGN_IN_PROTOCOL: "does not keep to PostgreSQL's protocol: is it a PostgreSQL?",
  SIGN_IN_CLOSED: "closed the connection as Keyhole signed in: its log says why.",
} as const satisfies Record<`SIGN_IN_${string}`, string>;

/** @see https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-START-UP */
const [ok, clear, md5, sasl, saslContinue, saslFinal] = [0, 3, 5, 10, 11, 12];
const roundsMax = 600_000;
/** By RFC 7677. With fewer, whoever poses as the server could try more passwords against the proof that it gets. */
const roundsMin = 4096;

/**
 * One sign-in to PostgreSQL. The server may be anybody: each message is answered once and in its order, what takes time
 * does not block, and where others may listen or pose as the server, only SCRAM counts.
 *
 * The patched driver calls `answer` for each message of authentication. Before `isDone` it accepts few other messages.
 */
export class PostgresSignIn {
  readonly #login: Login;
  /** What the server may send next. */
  #next: readonly number[] = [ok, clear, md5, sasl];
  #clientFirst = "";
  #serverProof = Buffer.alloc(0);
  /** Whether the server let us in. */
  isDone = false;

  constructor(login: Login) {
    this.#login = login;
  }

  /**
   * @param message - the body of an Authentication message
   * @returns the body of the password message to send, if any
   * @throws Error with a code of {@link signInFailures}
   */
  answer(message: Buffer): Buffer | Promise<Buffer> | undefined {
    const type = message.length < 4 ? undefined : message.readUInt32BE();
    const body = message.subarray(4);
    const isMethod = this.#next.includes(sasl) && type !== saslContinue && type !== saslFinal;
    if (type === undefined || !this.#next.includes(type)) {
      throw failure(isMethod && type !== undefined ? "SIGN_IN_METHOD" : "SIGN_IN_PROTOCOL");
    }
    this.#next = [];
    const { user, password, isVerified } = this.#login;
    if (type === ok) {
      // It has proved nothing, and the password says that it should.
      if (isMethod && password !== "" && !isVerified) throw failure("SIGN_IN_UNASKED");
      this.isDone = true;
    } else if (type === sasl) return this.#begin(body);
    else if (type === saslContinue) return this.#prove(text(body));
    else if (type === saslFinal) this.#verify(text(body));
    else if (!isVerified) throw failure("SIGN_IN_CLEAR");
    else {
      this.#next = [ok];
      const hash = (...parts: (string | Buffer)[]) => createHash("md5").update(Buffer.concat(parts.map(bytes)));
      const inner = hash(password, user).digest("hex");
      return bytes(`${type === clear ? password : `md5${hash(inner, body).digest("hex")}`}\0`);
    }
    return undefined;
  }

  /** SCRAM-SHA-256 by RFC 5802 and 7677, without channel binding, which the driver does not have. */
  #begin(mechanisms: Buffer): Buffer {
    if (!text(mechanisms).split("\0").includes("SCRAM-SHA-256")) throw failure("SIGN_IN_METHOD");
    this.#next = [saslContinue];
    this.#clientFirst = `n=*,r=${randomBytes(18).toString("base64")}`;
    const initial = bytes(`n,,${this.#clientFirst}`);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(initial.length);
    return Buffer.concat([bytes("SCRAM-SHA-256\0"), length, initial]);
  }

  async #prove(serverFirst: string): Promise<Buffer> {
    const [, nonce = "", salt = "", rounds = ""] =
      /^r=([\x21-\x2b\x2d-\x7e]{1,1000}),s=([A-Za-z0-9+/]{1,1000}={0,2}),i=([1-9]\d{0,9})$/.exec(serverFirst) ?? [];
    const ours = this.#clientFirst.slice("n=*,r=".length);
    if (!nonce.startsWith(ours) || nonce === ours) throw failure("SIGN_IN_PROTOCOL");
    if (Number(rounds) > roundsMax) throw failure("SIGN_IN_ROUNDS");
    if (Number(rounds) < roundsMin && !this.#login.isVerified) throw failure("SIGN_IN_FEW_ROUNDS");
    const salted = await derive(this.#login.password, Buffer.from(salt, "base64"), Number(rounds), 32, "sha256");
    const withoutProof = `c=biws,r=${nonce}`;
    const exchange = `${this.#clientFirst},${serverFirst},${withoutProof}`;
    const clientKey = hmac(salted, "Client Key");
    const signature = hmac(createHash("sha256").update(clientKey).digest(), exchange);
    this.#serverProof = hmac(hmac(salted, "Server Key"), exchange);
    this.#next = [saslFinal];
    return bytes(
      `${withoutProof},p=${Buffer.from(clientKey.map((byte, at) => byte ^ (signature[at] ?? 0))).toString("base64")}`,
    );
  }

  #verify(serverFinal: string): void {
    const proof = Buffer.from(/^v=([A-Za-z0-9+/]+=*)$/.exec(serverFinal)?.[1] ?? "", "base64");
    if (proof.length !== this.#serverProof.length || !timingSafeEqual(proof, this.#serverProof)) {
      throw failure("SIGN_IN_PROOF");
    }
    this.#next = [ok];
  }
}

type Login = {
  readonly user: string;
  readonly password: string;
  /** Whether nobody else can be at the other end: TLS that was verified, or this machine. */
  readonly isVerified: boolean;
};

const derive = promisify(pbkdf2);
const bytes = (part: string | Buffer) => Buffer.from(part as string);
const text = (part: Buffer) => part.toString("latin1");
const hmac = (key: Buffer, part: string) => createHmac("sha256", key).update(part).digest();
const failure = (code: keyof typeof signInFailures) => Object.assign(new Error(code), { code });
