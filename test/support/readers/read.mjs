// Run by Node and by Bun, in a scratch folder with a clean environment. Prints what a reader of dotenv text makes of it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseEnv } from "node:util";

const [mode, ...paths] = process.argv.slice(2);
const modes = {
  environment: () => process.env,
  parseEnv: () => paths.map((path) => parseEnv(readFileSync(path, "utf8"))),
  expand: () => {
    const require = createRequire(import.meta.url);
    const { parse } = require("dotenv");
    const { expand } = require("dotenv-expand");
    return paths.map((path) => expand({ parsed: parse(readFileSync(path, "utf8")), processEnv: {} }).parsed);
  },
};
process.stdout.write(JSON.stringify(modes[mode]()));
