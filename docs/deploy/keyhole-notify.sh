#!/bin/sh
# Hands a text to people: keyhole-notify SUBJECT < TEXT. NOTIFY_BY says how: mail, chat or ticket.
# The address of a webhook and a tracker's token are secrets: they are in curl's own file, not among its arguments.
set -eu
text=$(head -c 3500) # a chat takes no more
post() {
  curl --silent --show-error --fail --output /dev/null --max-time 20 --retry 3 --retry-connrefused \
    --config "$NOTIFY_CURL" --header 'Content-Type: application/json' --data-binary @-
}
case $NOTIFY_BY in
  mail)
    printf 'To: %s\nSubject: %s\nContent-Type: text/plain; charset=utf-8\n\n%s\n' "$NOTIFY_MAIL" "$1" "$text" |
      sendmail -t
    ;;
  chat) jq --null-input --arg text "$1: $text" '{$text}' | post ;;
  ticket) jq --null-input --arg title "$1" --arg body "$text" '{$title, $body}' | post ;;
  *)
    echo 'NOTIFY_BY is mail, chat or ticket.' >&2
    exit 2
    ;;
esac
