import { type NamedValue, renderEach } from "./dotenv.ts";

/**
 * CSV by RFC 4180 with the header `key,value`, for programs. Values stay exact: one that a spreadsheet would take for a
 * formula is not changed. All are in quotes, so that no reader trims a value or takes it for a missing one.
 * @see https://www.rfc-editor.org/rfc/rfc4180
 */
export function renderCsv(variables: readonly NamedValue[]): string {
  return `key,value\r\n${renderEach(variables, ({ name, value }) => `${name},${quoted(value)}\r\n`)}`;
}

/**
 * One record of RFC 4180: cells separated by commas, quoted if they contain a comma, a quote or a line end, then CRLF.
 *
 * Spreadsheets evaluate a cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return as a formula, and
 * clients choose the text of some cells. Such text gets a leading apostrophe, as OWASP recommends.
 * @see https://owasp.org/www-community/attacks/CSV_Injection
 */
export function csvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(cell: string | number): string {
  const text = typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : String(cell);
  return /[",\r\n]/.test(text) ? quoted(text) : text;
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
