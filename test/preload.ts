import "./seed.ts";

/** No test sees how this machine is set up: what a test needs, it says itself. `test/run.ts` speaks KEYHOLE_TEST_*. */
for (const name of Object.keys(process.env)) {
  const ours = name.startsWith("KEYHOLE_") && !name.startsWith("KEYHOLE_TEST_");
  if (ours || ["DATABASE_URL", "HOST", "PORT"].includes(name)) delete process.env[name];
}
