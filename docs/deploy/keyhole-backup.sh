#!/bin/sh
# Dumps the database, restores the dump beside it, and keeps the dump only if everything in the copy opens. If this host's
# PostgreSQL is a standby, it does nothing: the primary's host does it.
# keyhole-backup.service runs it, with the root key and the owner's DATABASE_URL, postgres://…@HOST/NAME?PARAMETERS.
set -eu
umask 077
folder=/var/backups/keyhole
dump=$folder/$(date +%F).dump
as_postgres() { runuser -u postgres -- "$@"; }
name=$(printf '%s\n' "$DATABASE_URL" | sed 's|^[^/]*//[^/?]*/*||; s|?.*||')

standby=$(as_postgres psql --no-psqlrc --quiet --tuples-only --no-align --command='SELECT pg_is_in_recovery()')
if [ "$standby" != f ]; then
  echo "No dump: PostgreSQL on this host is a standby, and the primary's host makes the backup."
  exit
fi

mkdir -p "$folder"
as_postgres pg_dump --format=custom --encoding=UTF8 --no-owner --no-privileges \
  --dbname="${name:?DATABASE_URL names no database}" > "$dump.part"
as_postgres dropdb --if-exists keyhole_check
as_postgres createdb --owner=keyhole_owner --encoding=UTF8 --template=template0 keyhole_check
as_postgres pg_restore --exit-on-error --single-transaction --no-owner --no-privileges \
  --role=keyhole_owner --dbname=keyhole_check < "$dump.part"
DATABASE_URL=$(printf '%s\n' "$DATABASE_URL" | sed 's|^\([^/]*//[^/?]*\)[^?]*|\1/keyhole_check|')
export DATABASE_URL
/usr/local/bin/keyhole audit verify
/usr/local/bin/keyhole rotate data # opens everything and seals it again, in the copy only
as_postgres dropdb keyhole_check
mv "$dump.part" "$dump"
find "$folder" -name '*.dump' -mtime +30 -delete
