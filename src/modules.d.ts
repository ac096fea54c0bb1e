/** Migrations are imported as text, so that the compiled program contains them. */
declare module "*.sql" {
  const text: string;
  export default text;
}

/** The dashboard's files for browsers, as text, so that the compiled program contains them. */
declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*/script.js" {
  const text: string;
  export default text;
}
declare module "*.svg" {
  const text: string;
  export default text;
}

/** JSON.parse source text access, which Bun has and TypeScript's library does not describe yet. */
interface JSON {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source: string }) => unknown,
  ): Readonly<Record<string, unknown>>;
  rawJSON(text: string): unknown;
}
