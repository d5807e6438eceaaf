#!/bin/sh
# Verifies the audit trail with the head of the last run, and exports the records since then.
#
#   verify-trail.sh <folder>
#
# The folder belongs to somebody who does not administer Sallyport, and is on write-once storage: every run adds two files, and
# changes none. Exit code: 0 if the trail is intact and exported; otherwise not 0, and the last line says why.
set -eu

folder=${1:?expected the folder for heads and exports}
mkdir -p "$folder"

# A minute ago: every record of that time is in the trail.
end=$(date -u -d "@$(($(date +%s) - ${LATE_SECONDS:-60}))" +%Y-%m-%dT%H:%M:%SZ)
last=$(ls "$folder" | sed -n 's/\.head$//p' | tail -n 1)
test "$last" != "$end" || exit 0

if test -n "$last"; then
  verified=$(sallyport audit verify --head "$(cat "$folder/$last.head")")
  sallyport audit --json --limit 999999 --since "$last" --until "$end" > "$folder/$end.ndjson"
else
  verified=$(sallyport audit verify)
  sallyport audit --json --limit 999999 --until "$end" > "$folder/$end.ndjson"
fi
echo "$verified" | sed -n 's/^Head: //p' > "$folder/$end.head"
echo "$verified"
