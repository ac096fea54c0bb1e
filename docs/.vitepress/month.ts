/**
 * The sections of a transcript (`test/support/transcript.ts`) as a page: prose, and commands with what they print.
 *
 * @param text - a transcript; what is above its first section is left out
 */
export function storyOf(text: string): string {
  const [, ...sections] = text.split(/^## /m);
  const pages = sections.map((section) => {
    const [heading = "", ...steps] = section.split(/^(?=[a-z]*\$ )/m);
    const [title = "", ...prose] = heading.trim().split("\n");
    return `## ${title}\n\n${prose.join("\n")}\n\n\`\`\`text\n${named(steps.join("").trim())}\n\`\`\`\n`;
  });
  return pages.join("\n");
}

/** The place where an id gets its name reads as the places that use the name. */
function named(text: string): string {
  return text.replace(/<id (\w+)>/g, "<$1>");
}
