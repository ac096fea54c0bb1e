/** A page of `docs/`, by its name without `.md`. */
export type Page = { readonly text: string; readonly page: string };
/** Pages of one task. Those without a text stand right below the shelf's name. */
export type Group = { readonly text?: string; readonly pages: readonly Page[] };
/** One of the three shelves. Its first page is what the top of the site links to. */
export type Shelf = { readonly text: string; readonly groups: readonly Group[] };

/** What readers find. A page of `docs/` that is missing here fails a test; those of `docs/maintainers/` are left out. */
export const shelves: readonly Shelf[] = [
  {
    text: "Start",
    groups: [
      {
        pages: [
          { text: "Start in five minutes", page: "start" },
          { text: "CI", page: "ci" },
          { text: "A team", page: "team" },
          { text: "Production on one host", page: "production" },
          { text: "Coming from elsewhere", page: "coming-from" },
          { text: "Dashboard", page: "dashboard" },
          { text: "Concepts", page: "concepts" },
          { text: "A month of a team", page: "month" },
        ],
      },
    ],
  },
  {
    text: "Use",
    groups: [
      {
        text: "Read secrets",
        pages: [
          { text: "run, pull, files pull", page: "fetch" },
          { text: "Told of a change", page: "told-of-a-change" },
          { text: "API", page: "api" },
          { text: "Trusts: no stored key", page: "trusts" },
          { text: "Kubernetes", page: "kubernetes" },
          { text: "External Secrets Operator", page: "external-secrets" },
          { text: "Containers", page: "containers" },
          { text: "Docker Compose", page: "compose" },
          { text: "AWS", page: "aws" },
          { text: "Google Cloud", page: "google" },
          { text: "Azure", page: "azure" },
          { text: "SPIFFE", page: "spiffe" },
          { text: "systemd", page: "systemd" },
          { text: "Inside other tools", page: "tools" },
          { text: "Terraform, OpenTofu", page: "terraform" },
          { text: "Ansible", page: "ansible" },
          { text: "TypeScript, JavaScript", page: "client" },
          { text: "Python and Go", page: "clients" },
          { text: "Agents (MCP)", page: "agents" },
        ],
      },
      {
        text: "Change secrets",
        pages: [
          { text: "Import, copy, export", page: "writing" },
          { text: "Undoing", page: "history" },
          { text: "Rotation", page: "rotation" },
        ],
      },
      {
        text: "Problems",
        pages: [
          { text: "Messages and what to do", page: "messages" },
          { text: "What each alert means", page: "incidents" },
          { text: "Being told", page: "alerts" },
          { text: "A leaked key", page: "leaked-key" },
          { text: "If a job is taken over", page: "taken-over" },
          { text: "Canaries", page: "canaries" },
          { text: "Backup and restore", page: "backup" },
        ],
      },
      {
        text: "Run a server",
        pages: [
          { text: "Configuration", page: "configuration" },
          { text: "Root key", page: "root-key" },
          { text: "TLS", page: "tls" },
          { text: "From where, how much", page: "where-and-how-much" },
          { text: "Database role", page: "least-privilege" },
          { text: "Health and metrics", page: "operations" },
          { text: "Several processes", page: "scale-out" },
          { text: "A failover, rehearsed", page: "failover" },
          { text: "Upgrades", page: "upgrade" },
          { text: "Releases", page: "releases" },
          { text: "Performance", page: "performance" },
        ],
      },
    ],
  },
  {
    text: "Trust",
    groups: [
      {
        pages: [
          { text: "Security model", page: "security" },
          { text: "Audit", page: "audit" },
          { text: "Proofs, notary, witness", page: "proof" },
          { text: "What you must read to believe us", page: "believe" },
          { text: "Questions of a review", page: "review" },
          { text: "Compared with others", page: "comparison" },
        ],
      },
    ],
  },
];

/** @returns the pages of a shelf, in their order */
export function pagesOf({ groups }: Shelf): Page[] {
  return groups.flatMap(({ pages }) => pages);
}
