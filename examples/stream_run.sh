#!/bin/sh
# Streams a run of the demo app to the terminal, from its first event to its last:
#
#   sh examples/stream_run.sh "Could we have a late check-out?"
#
# An answer that binds the house waits for a person. Approve it from another shell while this one
# goes on streaming:
#
#   sh examples/stream_run.sh --approve
#
# Needs curl and node, and `npm start` running. DATA_DIR is where that keeps its data.
set -eu

file=${DATA_DIR:-.data}/bootstrap.json
if [ ! -r "$file" ]; then
  echo "Cannot read $file: run \"npm start\" first, or set DATA_DIR to where it keeps its data." >&2
  exit 1
fi

# A field of JSON on standard input, by a path such as data.0.id.
field() {
  node -e '
    const path = process.argv[1].split(".");
    const json = JSON.parse(require("fs").readFileSync(0, "utf8"));
    process.stdout.write(String(path.reduce((value, name) => value?.[name], json) ?? ""));
  ' "$1"
}

url=$(field gateway_url <"$file")
host=$(field app_host <"$file")

# The app has a host of its own. The key goes to curl by standard input, where other users' ps does not see it.
app() {
  field access_key <"$file" | sed 's/.*/header = "Authorization: Bearer &"/' |
    curl --config - --silent --show-error --header "Host: $host" --header 'Content-Type: application/json' "$@"
}

if [ "${1:-}" = --approve ]; then
  waiting=$(app "$url/v1/runs?status=awaiting_input&page_size=1")
  run=$(echo "$waiting" | field data.0.id)
  request=$(echo "$waiting" | field data.0.input_requests.0.id)
  if [ -z "$request" ]; then
    echo "No run waits for a person." >&2
    exit 1
  fi
  app --fail-with-body --output /dev/null \
    --data "{\"responses\":[{\"input_request_id\":\"$request\",\"decision\":\"approve\"}]}" "$url/v1/runs/$run/resume"
  echo "Approved run $run."
else
  question=${1:-Could we have a late check-out?}
  body=$(node -p 'JSON.stringify({ stream: true, input: { question: process.argv[1] } })' "$question")
  app --no-buffer --fail-with-body --data "$body" "$url/v1/runs"
fi
