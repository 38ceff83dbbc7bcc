#!/bin/sh
# Takes out of an installed application what no role runs: tests, other platforms' binaries, the embedded
# Postgres of `npm start`, type declarations and source maps.
#
#     trim.sh APP x64|arm64
set -eu
app=$1
platform=$2
abi=137 # Node 24.
modules="$app/node_modules"
find "$app/api" "$app/gateway" "$app/media" -name '*.test.ts' -delete
find "$modules/uWebSockets.js" -name '*.node' ! -name "uws_linux_${platform}_$abi.node" -delete
rm -rf "$modules/@embedded-postgres" "$modules/embedded-postgres" "$modules/typescript" "$modules/@typescript" "$modules/@types" \
  "$modules/.cache" "$modules/uWebSockets.js/examples" "$modules/uWebSockets.js/docs" "$modules/uWebSockets.js/tests" "$modules/uWebSockets.js/src"
find "$modules" -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' -o -name '*.md' -o -name '*.markdown' \) -delete
