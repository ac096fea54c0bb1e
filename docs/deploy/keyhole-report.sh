#!/bin/sh
# Says what expires or is to be rotated within 30 days, and whether the audit verifies. On one day of the week, Monday
# unless REPORT_UNUSED_ON is 2 to 7, also what nobody used for 90 days, and which keys and trusts never expire. If all
# is well, it says nothing.
set -eu

# Prints a list under its heading, or nothing if it is empty.
listed() {
  heading=$1
  shift
  list=$("$@" --unread 90d) || return 1
  [ -z "$list" ] || printf '\n%s\n%s\n' "$heading" "$list"
}

# Prints keys and trusts that were not used, and what no machine asked for.
unused() {
  keyhole key list --unused 90d || return 1
  keyhole trust list --unused 90d || return 1
  projects=$(keyhole project list --json) || return 1
  projects=$(printf '%s' "$projects" | jq -r '.[] | "\(.organization)/\(.slug)"') || return 1
  for project in $projects; do
    for environment in development staging production; do
      listed "Variables of $project, $environment" keyhole var list "$project" "$environment" || return 1
    done
    listed "Accounts of $project" keyhole account list "$project" || return 1
    listed "Files of $project" keyhole file list "$project" || return 1
  done
}

# Prints keys and trusts without an end.
endless() {
  keyhole key list --never-expires || return 1
  keyhole trust list --never-expires
}

# Sends what a command prints, if anything, under one subject; if the command fails, why, under another.
report() {
  subject=$1 failure=$2
  shift 2
  if ! "$@" > "$output" 2> "$output.errors"; then
    keyhole-notify "Keyhole: $failure" < "$output.errors"
    failed=1
  elif [ -s "$output" ]; then
    keyhole-notify "Keyhole: $subject" < "$output"
  fi
}

output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=0
report 'to renew or rotate within 30 days' 'what expires is not known' keyhole expiring --within 30d
if [ "$(date +%u)" = "${REPORT_UNUSED_ON:-1}" ]; then
  report 'not used for 90 days' 'what nobody uses is not known' unused
  report 'never expires' 'what never expires is not known' endless
fi
rm -f "$output.errors"
if ! journalctl --unit=keyhole --output=cat | keyhole audit verify --checkpoint - > "$output" 2>&1; then
  keyhole-notify 'Keyhole: the audit was not verified' < "$output"
  failed=1
fi
exit "$failed"
