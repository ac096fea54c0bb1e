/** The part of autocannon that the benchmark uses. The package has no types. */
declare module "autocannon" {
  export type Request = {
    readonly method: "GET";
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
  };
  export type Client = {
    setRequests(requests: readonly Request[]): void;
    on(event: "response", listener: (status: number, bytes: number, durationMs: number) => void): void;
  };
  export type Result = { readonly duration: number; readonly errors: number; readonly timeouts: number };
  export default function autocannon(options: {
    readonly url: string;
    readonly connections: number;
    /** Seconds. */
    readonly duration: number;
    /** Seconds. */
    readonly timeout: number;
    readonly setupClient: (client: Client) => void;
  }): Promise<Result>;
}
