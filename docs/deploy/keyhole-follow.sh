#!/bin/sh
# Hands each new audit entry of the actions FOLLOW_ACTIONS to people. The time of the last one that was handed over is
# kept, so after a restart nothing is left out. A few entries may come twice.
set -eu
last=$STATE_DIRECTORY/last
[ -s "$last" ] || date -u +%FT%TZ > "$last"
keyhole audit list --follow --json --since "$(cat "$last")" --limit 10000 --action "$FOLLOW_ACTIONS" |
  jq --unbuffered --raw-output '[
    (.time / 1000 | floor | todate),
    ([.actor.name // .actor.id, .action, .organization, .project, .environment, .names[]] | map(values) | join(" "))
  ] | @tsv' |
  while IFS="$(printf '\t')" read -r time words; do
    until printf '%s\n' "$time $words" | keyhole-notify 'Keyhole'; do sleep "${FOLLOW_PAUSE:-30}"; done
    printf '%s\n' "$time" > "$last"
  done
exit 1 # following ends only if something is wrong: systemd starts it again
