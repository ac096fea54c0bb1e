import { beforeAll, expect, test } from "bun:test";
import { Readable } from "node:stream";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { complete } from "../../src/cli/completion.ts";
import { isPeoples, judgeCommand, leadsThrough } from "../../src/cli/door.ts";
import { frame } from "../../src/cli/terminal/command.ts";
import { commandFor } from "../../src/cli/terminal/draw.ts";
import { toProblem } from "../../src/cli/terminal/failure.ts";
import { type CommandContext, noun } from "../../src/cli/terminal/verb.ts";
import { counted } from "../../src/core/words/text.ts";
import { carryOut, planned, typedIn } from "../../src/dashboard/parts/carry-out.ts";
import { Form } from "../../src/dashboard/parts/visit.ts";
import { file, flag, force, out, project, typed } from "../../src/people/desk/inputs.ts";
import { operation } from "../../src/people/desk/operation.ts";
import { done, list } from "../../src/people/desk/outcome.ts";
import { contextOf as plainContext, streamTo } from "../support/context.ts";
import { settingsOf } from "../support/door.ts";
import { showProject } from "../support/plans.ts";
import { describeBoth, type World } from "../support/world.ts";

/** An operation that nobody has: it greets a project with the text that it reads. */
const greet = operation({
  path: "greeting send",
  about: "Greet a project.",
  examples: ["keyhole greeting send acme/web < greeting.txt"],
  right: "write",
  asks: "needs --yes",
  inputs: {
    project,
    loud: flag("--loud", "in capitals"),
    text: typed({ bytesMax: 100, what: () => "The greeting", unlessEmpty: "say nothing" }),
  },
  plan: async (admin, { project, text, loud }) => {
    const { id, slug } = await showProject(admin, project);
    const words = Buffer.from(await text.read()).toString();
    const apply = async () => {
      const said = loud ? words.toUpperCase() : words;
      return done({ slug, said }, `${slug}: ${said} (${counted(said.length, "character")})`, ["It may blush."]);
    };
    return { deed: `greet ${slug}`, seen: { project: id, words: words.length }, document: { slug }, apply };
  },
});

const forOperators = operation({
  path: "greeting count",
  about: "Count greetings.",
  examples: ["keyhole greeting count"],
  right: "operator",
  inputs: { list: file("--list <file>", "names", { bytesMax: 100 }), out, force },
  run: async () => done({}, "None."),
});

const greetings = operation({
  path: "greeting list",
  about: "List greetings.",
  examples: ["keyhole greeting list"],
  right: "see",
  inputs: {},
  run: async () => list(["hello", "hi", "hey"], { GREETING: (one) => one }, "None."),
});

describeBoth("one row", (w) => {
  beforeAll(() => w.place({}));

  test("gives a command with help", async () => {
    const { help } = await ran(w, ["greeting", "send", "--help"]);
    expect(help).toContain("Usage: keyhole greeting send [options] <project>");
    expect(help).toContain("--loud");
    expect(help).toContain("--yes");
    expect(help).toContain("keyhole greeting send acme/web < greeting.txt");
  });

  test("says on stderr what was done, and with --json on stdout", async () => {
    expect(await ran(w, ["greeting", "send", "web", "--loud", "--yes"])).toMatchObject({
      code: "done",
      stdout: "",
      stderr: "It may blush.\nweb: HELLO (5 characters)\n",
    });
    const { stdout } = await ran(w, ["greeting", "send", "web", "--yes", "--json"]);
    expect(JSON.parse(stdout)).toEqual({ slug: "web", said: "hello", warnings: ["It may blush."] });
  });

  test("that lists shows as many as are asked for, and says how many more there are", async () => {
    const more = "1 more row: raise --limit to see it.\n";
    const two = await ran(w, ["greeting", "list", "--limit", "2"]);
    expect(two).toMatchObject({ stdout: "GREETING\nhello\nhi\n", stderr: more });
    const json = await ran(w, ["greeting", "list", "--limit", "2", "--json"]);
    expect(json).toMatchObject({ stdout: '["hello","hi"]\n', stderr: more });
    expect(await ran(w, ["greeting", "list", "--limit", "3"])).toMatchObject({ stderr: "" });
    const { stderr } = await ran(w, ["greeting", "list", "--limit", "0"]);
    expect(stderr).toContain("takes a whole number of at least 1");
  });

  test("asks, and refuses where nobody can be asked", async () => {
    const { code, stderr } = await ran(w, ["greeting", "send", "web"]);
    const words = "This would greet web. Nobody can be asked here, so it needs --yes.\n";
    expect([code, stderr]).toEqual(["invalid_usage", words]);
  });

  test("refuses what it cannot take, with its command's name", async () => {
    expect((await ran(w, ["greeting", "send"])).stderr).toBe(
      "greeting send: missing required argument 'project'. See 'keyhole greeting send --help'.\n",
    );
    const { stderr } = await ran(w, ["greeting", "send", "web", "--yes"], "");
    expect(stderr).toBe("Nothing came on stdin: say nothing.\n");
  });

  test("is completed by the names in use", async () => {
    const { program } = drawn(contextOf(w, ""));
    const asked: unknown[] = [];
    const find = async (what: unknown) => {
      asked.push(what);
      return [{ word: "acme/web" }];
    };
    expect(await complete(program, ["greeting", "s"], find)).toEqual([{ word: "send" }]);
    expect(await complete(program, ["greeting", "send", ""], find)).toEqual([{ word: "web" }]);
    expect(asked.at(-1)).toEqual({ of: "projects" });
  });

  test("comes through the door if it takes a right, and what is for operators does not", () => {
    const { program } = drawn(contextOf(w, ""));
    const [greeting] = program.commands as readonly [CommandUnknownOpts];
    const [send, count] = greeting.commands as readonly [CommandUnknownOpts, CommandUnknownOpts];
    expect([isPeoples(send), isPeoples(count), leadsThrough(greeting)]).toEqual([true, false, true]);
    expect(() => judgeCommand(count)).toThrow("keyhole greeting count is not for people over SSH");
    expect(() => judgeCommand(send)).not.toThrow();
  });

  test("is the answer to a form of the dashboard", async () => {
    const given = { project: "web", loud: undefined, text: typedIn("hello") };
    const { deed, seen } = await planned({ admin: w.admin }, greet, given);
    expect(deed).toBe("greet web");
    const send = (fields: object) => {
      const form = new Form(new URLSearchParams(Object.entries(fields)).toString());
      return carryOut({ admin: w.admin, form }, greet, given, "/p/acme/web");
    };
    expect(await send(seen)).toEqual({ to: "/p/acme/web", notice: "web: hello (5 characters) It may blush." });
    for (const changed of [{ words: 4 }, { project: "another" }]) {
      await expect(send({ ...seen, ...changed })).rejects.toMatchObject({ kind: "conflict" });
    }
    await expect(send({})).rejects.toMatchObject({ kind: "invalid" });
  });

  test("says what it would do, and does not", async () => {
    expect(await ran(w, ["greeting", "send", "web", "--dry-run"])).toMatchObject({
      code: "done",
      stdout: "",
      stderr: "Nothing was written. It would greet web.\n",
    });
  });

  test("cannot ask without a plan that says what was seen", () => {
    const words = { path: "x", about: "x", examples: ["x"], right: "write", inputs: {} } as const;
    const run = async () => done({}, "");
    // @ts-expect-error: it asks, and has no plan
    operation({ ...words, asks: "needs --yes", run });
    const apply = run;
    // @ts-expect-error: it asks about something, and does not say what it saw
    operation({ ...words, asks: "needs --yes", plan: async () => ({ deed: "x", document: {}, apply }) });
    // @ts-expect-error: its plan does not carry what is done
    operation({ ...words, asks: "needs --yes", plan: async () => ({ deed: "x", document: {}, seen: {} }) });
    // @ts-expect-error: what is done must come from the plan
    operation({ ...words, plan: async () => ({ seen: {}, document: {}, apply }), run });
    // @ts-expect-error: nothing that runs can ask
    operation({ ...words, run: async (_, __, { agree }) => done({}, await agree("x")) });
  });
});

function drawn(context: CommandContext) {
  let help = "";
  const program = noun("keyhole", "A program.");
  program.addCommand(commandFor({ about: "Greetings.", rows: [greet, forOperators, greetings] }, context));
  frame(program, (text) => {
    help += text;
  });
  return { program, help: () => help };
}

async function ran(w: World, words: readonly string[], stdin = "hello") {
  const streams = { stdout: "", stderr: "" };
  const context = contextOf(w, stdin, words.includes("--json"), (name, text) => {
    streams[name] += text;
  });
  const { program, help } = drawn(context);
  try {
    await program.parseAsync([...words], { from: "user" });
    return { code: "done", ...streams, help: help() };
  } catch (error) {
    if (help() !== "") return { code: "done", ...streams, help: help() };
    const { code, message } = toProblem(error, {});
    return { code, stdout: streams.stdout, stderr: `${message}\n`, help: "" };
  }
}

function contextOf(
  w: World,
  stdin: string,
  json = false,
  put: (name: "stdout" | "stderr", text: string) => void = () => {},
): CommandContext {
  const [stdout, stderr] = (["stdout", "stderr"] as const).map((name) => streamTo((chunk) => put(name, String(chunk))));
  const streams = { stdin: Readable.from([Buffer.from(stdin)]), stdout, stderr };
  const terminal = streams as unknown as CommandContext["terminal"];
  return plainContext({ env: settingsOf(w), terminal, json, say: (line) => put("stderr", `${line}\n`) });
}
