/**
 * One record of RFC 4180: cells separated by commas, quoted if they contain a comma, a quote or a line end, then CRLF.
 *
 * Spreadsheets evaluate a cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return as a formula, and clients
 * choose the text of some cells. Such text gets a leading apostrophe, as OWASP recommends.
 *
 * @see https://owasp.org/www-community/attacks/CSV_Injection
 */
export function csvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(cell: string | number): string {
  const text = typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
