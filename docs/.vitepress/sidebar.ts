/** A page of `docs/`, by its name without `.md`. */
export type Page = { readonly text: string; readonly page: string };
/** One of the four ways in. Its first page is what the top of the site links to. */
export type Way = { readonly text: string; readonly pages: readonly Page[] };

/** The site's navigation. A page of `docs/` that is missing here fails a test. */
export const ways: readonly Way[] = [
  {
    text: "Start",
    pages: [
      { text: "Start in five minutes", page: "start" },
      { text: "A month of a team", page: "month" },
      { text: "Dashboard", page: "dashboard" },
      { text: "Concepts", page: "concepts" },
      { text: "Configuration", page: "configuration" },
      { text: "Compared with others", page: "comparison" },
      { text: "Coming from elsewhere", page: "coming-from" },
    ],
  },
  {
    text: "Fetch",
    pages: [
      { text: "run, pull, files pull", page: "fetch" },
      { text: "CI", page: "ci" },
      { text: "Containers", page: "containers" },
      { text: "Docker Compose", page: "compose" },
      { text: "Kubernetes", page: "kubernetes" },
      { text: "SPIFFE", page: "spiffe" },
      { text: "systemd", page: "systemd" },
      { text: "direnv", page: "direnv" },
      { text: "Terraform, OpenTofu", page: "terraform" },
      { text: "Ansible", page: "ansible" },
      { text: "Client for programs", page: "client" },
      { text: "Python and Go", page: "clients" },
      { text: "Agents (MCP)", page: "agents" },
      { text: "API reference", page: "api" },
    ],
  },
  {
    text: "Operate",
    pages: [
      { text: "Production on one host", page: "production" },
      { text: "Operations", page: "operations" },
      { text: "Being told", page: "alerts" },
      { text: "A leaked key", page: "leaked-key" },
      { text: "Root key", page: "root-key" },
      { text: "TLS", page: "tls" },
      { text: "Database role", page: "least-privilege" },
      { text: "Backup", page: "backup" },
      { text: "History and rollback", page: "history" },
      { text: "Rotation", page: "rotation" },
      { text: "A team on one bastion", page: "team" },
      { text: "Audit", page: "audit" },
      { text: "Proofs for others", page: "proof" },
      { text: "A witness", page: "witness" },
      { text: "Several processes", page: "scale-out" },
      { text: "Upgrades", page: "upgrade" },
      { text: "Releases", page: "releases" },
    ],
  },
  {
    text: "Understand",
    pages: [
      { text: "Security model", page: "security" },
      { text: "Questions of a review", page: "review" },
      { text: "Proofs", page: "proofs" },
      { text: "… of sets", page: "proofs-sets" },
      { text: "… of keys and limits", page: "proofs-keys" },
      { text: "… of the audit", page: "proofs-audit" },
      { text: "… of the server", page: "proofs-server" },
      { text: "… of commands", page: "proofs-people" },
      { text: "… of persons", page: "proofs-persons" },
      { text: "… of the dashboard", page: "proofs-dashboard" },
      { text: "… of clients", page: "proofs-clients" },
      { text: "Architecture", page: "architecture" },
      { text: "Decisions", page: "decisions" },
      { text: "Performance", page: "performance" },
      { text: "How it is measured", page: "performance-method" },
      { text: "Dependencies", page: "dependencies" },
    ],
  },
];
