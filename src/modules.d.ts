/** Migrations are imported as text, so that the compiled program contains them. */
declare module "*.sql" {
  const text: string;
  export default text;
}
