/** Migrations are imported as text, so that the compiled program contains them. */
declare module "*.sql" {
  const text: string;
  export default text;
}

/** Where the dashboard's files for browsers are: on the disk, or in the compiled program, which contains them. */
declare module "*.css" {
  const path: string;
  export default path;
}
declare module "./script/*.js" {
  const path: string;
  export default path;
}
declare module "*.svg" {
  const path: string;
  export default path;
}

/** JSON.parse source text access, which Bun has and TypeScript's library does not describe yet. */
interface JSON {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source: string }) => unknown,
  ): Readonly<Record<string, unknown>>;
  rawJSON(text: string): unknown;
}
