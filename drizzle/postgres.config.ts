import { defineConfig } from "drizzle-kit";

export default defineConfig({ dialect: "postgresql", schema: "./src/store/postgres.ts", out: "./drizzle/postgres" });
