/** Migrations are imported as text, so that the built program holds them. */
declare module "*.sql" {
  const text: string;
  export default text;
}
