import { tsPlugin } from "@sveltejs/acorn-typescript";
import { type Node, Parser } from "acorn";

/** A small fault that the text of a file may have: where it is, what stands there, and what is done to it. */
export type Mutant = { readonly line: number; readonly text: string; readonly fault: string };

type Tree = Node & Readonly<Record<string, unknown>>;

const parser = Parser.extend(tsPlugin());
const moved: Readonly<Record<string, string>> = { "<": "<=", "<=": "<", ">": ">=", ">=": ">" };
const inSql: Readonly<Record<string, string>> = { ...moved, and: "or", or: "and", "is null": "is not null" };
const comparisons = new Set(["===", "!==", ...Object.keys(moved)]);

/**
 * Puts all faults into the text of a file, each behind a question: `$m(3)` is true if the fault 3 is wanted.
 *
 * @param first - the number of the first fault
 * @returns the text, on the same lines, and the faults in the order of their numbers
 */
export function mutate(source: string, first: number): { text: string; mutants: Mutant[] } {
  const mutants: Mutant[] = [];
  const textOf = ({ start, end }: Tree) => source.slice(start, end);
  const lines = source.split("\n");
  const lineOf = ({ start }: Tree) => source.slice(0, start).split("\n").length;
  /** The question for one more fault. */
  const wanted = (node: Tree, fault: string) => {
    const isNumber = typeof node["value"] === "number"; // its line says which one it is
    const text = isNumber ? (lines[lineOf(node) - 1] as string).trim() : textOf(node).replaceAll(/\s+/g, " ");
    return `$m(${first + mutants.push({ line: lineOf(node), text, fault }) - 1})`;
  };

  const write = (node: Tree, parent?: Tree): string => {
    let text = "";
    let at = node.start;
    for (const child of childrenOf(node)) {
      text += source.slice(at, child.start) + write(child, node);
      at = child.end;
    }
    return withFaults(node, text + source.slice(at, node.end), parent);
  };

  const withFaults = (node: Tree, text: string, parent?: Tree): string => {
    const { type, operator } = node;
    let faulty = text;
    const isLogical = (one: Tree | undefined) => one?.type === "LogicalExpression" && one["operator"] !== "??";
    const isComparison = type === "BinaryExpression" && comparisons.has(String(operator));
    if (isComparison && moved[String(operator)]) {
      const [left, right] = [node["left"], node["right"]] as [Tree, Tree];
      const other = `${textOf(left)} ${moved[String(operator)]} ${textOf(right)}`;
      faulty = `(${wanted(node, "moved by one")} ? ${other} : ${faulty})`;
    }
    const isTest = parent?.["test"] === node;
    if (isLogical(parent) && !isLogical(node)) {
      const drop = wanted(node, "left out");
      return parent?.["operator"] === "&&" ? `(${drop} || ${faulty})` : `(!${drop} && ${faulty})`;
    }
    if (isTest && (parent?.type === "IfStatement" || parent?.type === "ConditionalExpression")) {
      return `(${wanted(node, "always")} || !${wanted(node, "never")} && (${faulty}))`;
    }
    const isNot = type === "UnaryExpression" && operator === "!";
    if ((isComparison || isNot || isLogical(node)) && !isTest && !isLogical(parent)) {
      return `(${wanted(node, "true")} || !${wanted(node, "false")} && (${faulty}))`;
    }
    if (type === "ExpressionStatement" && !/^["']/.test(text)) {
      const expression = faulty.replace(/;$/, "");
      return `${wanted(node, "left out")} || (${awaited(node["expression"] as Tree, expression)});`;
    }
    if (type === "ReturnStatement" && (node["argument"] as Tree | null)?.type === "AwaitExpression") {
      return `return ${awaited(node["argument"] as Tree, faulty.slice("return ".length).replace(/;$/, ""))};`;
    }
    if (type === "Literal" && typeof node["value"] === "number" && !(parent?.["computed"] === true)) {
      return `(${faulty} + +${wanted(node, "plus one")})`;
    }
    const isList = parent?.type === "ArrayExpression" && (parent["elements"] as unknown[]).length > 1;
    const isField =
      parent?.type === "CallExpression" && /^encodeFields\(/.test(textOf(parent)) && parent["callee"] !== node;
    if ((isList || isField) && type !== "SpreadElement") return `...(${wanted(node, "left out")} ? [] : [${faulty}])`;
    if (parent?.type === "TemplateLiteral" && type !== "TemplateElement" && !taggedTemplates.has(parent)) {
      return `${wanted(node, "left out")} ? "" : ${faulty}`;
    }
    if (type === "TaggedTemplateExpression" && textOf(node["tag"] as Tree) === "sql") {
      for (const part of (node["quasi"] as Tree)["quasis"] as Tree[]) {
        for (const { index, 0: word } of textOf(part).matchAll(/(?<=\s)(?:and|or|<=?|>=?|is null)(?![^\s])/g)) {
          const at = part.start + index;
          const other = source.slice(node.start, at) + inSql[word] + source.slice(at + word.length, node.end);
          faulty = `(${wanted(part, `${word}: ${inSql[word]}`)} ? ${other} : ${faulty})`;
        }
      }
    }
    return faulty;
  };
  const awaited = (node: Tree, text: string) =>
    node.type === "AwaitExpression"
      ? `${wanted(node, "not awaited")} ? (${text.replace(/^await/, "")}) : ${text}`
      : text;

  const taggedTemplates = new Set<Tree>();
  const childrenOf = (node: Tree): Tree[] => {
    if (/^(?:Import|TSType|TSInterface|TSEnum|TSDeclare|TSParameter)|^ExportAll/.test(node.type)) return [];
    if (node.type === "NewExpression" && /^new (?:\w*Error|Fault|Problem|Refused)\b/.test(textOf(node))) return [];
    if (node.type === "TaggedTemplateExpression") taggedTemplates.add(node["quasi"] as Tree);
    const names = node.type.startsWith("TS") ? ["expression"] : Object.keys(node);
    const isNamed = node["computed"] !== true && node["key"] !== undefined;
    return names
      .filter((name) => !/^(?:type\w*|returnType|implements)$/.test(name))
      .filter((name) => !(name === "key" && isNamed) && !(name === "value" && node["shorthand"] === true))
      .flatMap((name) => node[name])
      .filter((one): one is Tree => typeof one === "object" && one !== null && "type" in one && "start" in one)
      .filter(({ type }) => !/^(?:TSType|TSInterface)/.test(type))
      .sort((one, other) => one.start - other.start);
  };
  const tree = parser.parse(source, { sourceType: "module", ecmaVersion: "latest" }) as unknown as Tree;
  return { text: write(tree), mutants };
}
