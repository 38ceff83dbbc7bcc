#!/usr/bin/env bash
# Builds the native part of uWebSockets.js from upstream's source for this Node and this machine, without
# TLS and HTTP/3, which the gateway does not use, and puts it in the place of the packaged one.
#
#     standalone/build_native_sockets.sh FOLDER    a clone of uNetworking/uWebSockets.js with its submodules
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2; }
source=$(cd "$1" && pwd)
house=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
for part in src/addon.cpp uWebSockets/src/App.h uWebSockets/uSockets/src/libusockets.h; do
  [ -e "$source/$part" ] || { echo "Cannot build: expected $source/$part (a clone with --recurse-submodules)" >&2; exit 1; }
done
headers=${NODE_HEADERS:-$(node -p 'require("path").resolve(process.execPath, "../../include/node")')}
[ -e "$headers/node.h" ] || { echo "Cannot build: expected Node's headers in $headers, or NODE_HEADERS to name their folder" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
sockets=$source/uWebSockets/uSockets/src
flags=(-O3 -fPIC -pthread -DLIBUS_NO_SSL -DLIBUS_USE_LIBUV "-I$sockets" "-I$headers")
"${CC:-cc}" "${flags[@]}" -c "$sockets"/*.c "$sockets"/eventing/*.c
# The addon names HTTP/3's functions and never calls them here: they stay unbound.
"${CXX:-c++}" -std=c++20 -DNDEBUG "${flags[@]}" -DLIBUS_USE_QUIC -DUWS_WITH_PROXY -DUWS_NO_ZLIB \
  "-I$source/uWebSockets/src" -c "$source/src/addon.cpp"
shared=(-shared)
[ "$(uname)" != Darwin ] || shared=(-dynamiclib -undefined dynamic_lookup)
name=$(node -p '`uws_${process.platform}_${process.arch}_${process.versions.modules}.node`')
"${CXX:-c++}" "${shared[@]}" -pthread -o "$name" ./*.o

# A new file: other folders may share the old one by a hard link.
rm -f "$house/node_modules/uWebSockets.js/$name"
cp "$name" "$house/node_modules/uWebSockets.js/$name"
cd "$house"
node -e 'require("uWebSockets.js").App().close()'
node standalone/native_binaries.mjs --write
echo "$name is built from $source and listed. The suite that has to pass: npm test -- gateway/transport"
