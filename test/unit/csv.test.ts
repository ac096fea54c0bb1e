import { expect, test } from "bun:test";
import { csvLine } from "../../src/core/formats/csv.ts";

test.each<[cells: (string | number)[], line: string]>([
  [["a", "b"], "a,b\r\n"],
  [["", 7, ""], ",7,\r\n"],
  [["a,b", 'say "x"'], '"a,b","say ""x"""\r\n'],
  [["two\nlines", "cr\rhere"], '"two\nlines","cr\rhere"\r\n'],
  // Spreadsheets would evaluate these.
  [["=1+1", "+1", "-1", "@SUM(A1)"], "'=1+1,'+1,'-1,'@SUM(A1)\r\n"],
  [["\t=1", "\r=1"], "'\t=1,\"'\r=1\"\r\n"],
  [['=HYPERLINK("x","y")'], '"\'=HYPERLINK(""x"",""y"")"\r\n'],
  // Numbers are not chosen by clients.
  [[-1, 0], "-1,0\r\n"],
  [["a=1", "1-1", "é"], "a=1,1-1,é\r\n"],
])("a CSV record %j is %j", (cells, line) => expect(csvLine(cells)).toBe(line));
