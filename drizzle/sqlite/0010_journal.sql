-- From here on, the journal of migrations is a table of Keyhole's own: see src/store/migrate.ts.
SELECT 1;
