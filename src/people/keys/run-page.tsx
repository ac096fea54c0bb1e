/** @jsxImportSource preact */
import { type Environment, environments } from "../../core/names.ts";
import { Chips, LoneLink, Name, ShellLines } from "../../dashboard/parts/parts.tsx";
import { projectPagePath, withQuery } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { findProject } from "../desk/projects.ts";

/** The lines with which machines use an environment of a project, for everybody who may see it. */
export async function runPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const asked = visit.environment();
  const project = await findProject(admin, where, "see", asked && [asked]);
  const seen = visit.reached(project, "see");
  const environment = asked ?? seen[0] ?? environments[0];
  const { id, slug, organization } = project;
  const mayMakeKey = visit.reached(project, "keys", "reveal").includes(environment);
  const newKey = withQuery("/keys/new", {
    org: organization.slug,
    projects: `${slug}/${id}`,
    environments: environment,
  });
  const main = (
    <>
      <Chips
        label="Environments"
        items={seen.map((one) => ({
          words: one,
          to: projectPagePath(where, "run", { environment: one }),
          isHere: one === environment,
        }))}
      />
      <p>
        Put your server's address in place of {exampleUrl}, and the key into <Name>{`${slug}.key`}</Name>.
      </p>
      {Object.entries(linesFor(slug, environment)).map(([title, lines], at) => (
        <section>
          <h2>{title}</h2>
          <ShellLines id={`lines-${at}`}>{lines}</ShellLines>
        </section>
      ))}
      {mayMakeKey && <LoneLink to={newKey}>Create a key for it</LoneLink>}
    </>
  );
  return { title: `How to run ${where}`, heading: "How to run it", main };
}

export const exampleUrl = "https://keyhole.example";

/** What a shell must know before it runs one of the programs. @param key - or where it is */
export function settingsLine(key: string): string {
  return `export KEYHOLE_URL=${exampleUrl} ${key}`;
}

/** Starts a program with the variables of an environment. */
export function runLine(project: string, environment: string): string {
  return `keyhole run -p ${project} -e ${environment} -- ./start`;
}

/** By what they are for. The key is in a file. YAML takes a slug such as 007 for a number, unless it is quoted. */
function linesFor(project: string, environment: Environment): Readonly<Record<string, string>> {
  const settings = settingsLine(`KEYHOLE_API_KEY_FILE=${project}.key`);
  return {
    "A program": `${settings}\n${runLine(project, environment)}`,
    "A file": `${settings}\nkeyhole pull -p ${project} -e ${environment} --out ${project}.env`,
    "A job in CI": [
      "# With a trust, set KEYHOLE_OIDC=env:KEYHOLE_TOKEN in place of KEYHOLE_API_KEY_FILE.",
      settings,
      `export KEYHOLE_PROJECT=${project} KEYHOLE_ENVIRONMENT=${environment}`,
      "keyhole run --wait 60s -- ./deploy.sh",
    ].join("\n"),
    "Docker Compose": `# In the shell that runs Compose: ${settings}
# Variables are called KEYHOLE_SECRETS_NAME. With Compose 5.2, add "names: exact" to the options for NAME.
services:
  keyhole_secrets:
    provider:
      type: keyhole
      options:
        project: "${project}"
        env: ${environment}
        wait: 60s
  "${project}":
    image: "${project}"
    depends_on: [keyhole_secrets]`,
    "Kubernetes, with a trust": `spec:
  serviceAccountName: "${project}"
  containers:
    - name: "${project}"
      image: registry.example.com/${project} # with the program keyhole in it
      command: [keyhole, run, --wait, 60s, --, ./start]
      env:
        - { name: KEYHOLE_OIDC, value: "file:/var/run/secrets/keyhole/token" }
        - { name: KEYHOLE_URL, value: "${exampleUrl}" }
        - { name: KEYHOLE_PROJECT, value: "${project}" }
        - { name: KEYHOLE_ENVIRONMENT, value: ${environment} }
      volumeMounts:
        - { name: keyhole, mountPath: /var/run/secrets/keyhole, readOnly: true }
  volumes:
    - name: keyhole
      projected:
        sources:
          - serviceAccountToken: { path: token, audience: keyhole, expirationSeconds: 600 }`,
  };
}
