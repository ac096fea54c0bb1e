#!/usr/bin/env node
// The command `keyhole` of the npm package: runs the program for this machine, which is in an optional package.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { isatty } from "node:tty";

const require = createRequire(import.meta.url);
const name = `@keyhole/${process.platform}-${process.arch}${isMusl() ? "-musl" : ""}`;
const program = findProgram();

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(126, `${program} does not run: ${error.message}`));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});

// A terminal sends the first two to the program as well, and a second signal ends a server at once.
const fromTerminal = [0, 1, 2].some(isatty) ? ["SIGINT", "SIGQUIT"] : [];
for (const signal of ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"]) {
  process.on(signal, () => fromTerminal.includes(signal) || child.kill(signal));
}

function isMusl() {
  return process.platform === "linux" && process.report.getReport().header.glibcVersionRuntime === undefined;
}

function findProgram() {
  const { version, optionalDependencies } = require("./package.json");
  if (optionalDependencies[name] === undefined) fail(126, `There is no program for ${name.slice("@keyhole/".length)}.`);
  try {
    return require.resolve(`${name}/keyhole`);
  } catch {
    return fail(126, `${name} is not installed: install keyhole@${version} again, with its optional packages.`);
  }
}

function fail(code, sentence) {
  console.error(`keyhole: ${sentence}`);
  process.exit(code);
}
