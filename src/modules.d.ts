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
