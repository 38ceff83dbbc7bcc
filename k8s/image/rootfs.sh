#!/usr/bin/env bash
# Builds the image's root file system without a container engine: a few of Debian 13's packages, Node 24
# from npm, and the application. For an engine there is the Containerfile, which makes the same.
#
#     sudo k8s/image/rootfs.sh OUT       needs mmdebstrap, npm and git; about two minutes
#
# OUT/rootfs is the tree, OUT/rootfs.tar the same as a file for `ADD` or `buildah`, OUT/commit what it was made of.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
node=24.21.0
case "$(dpkg --print-architecture)" in
  amd64) platform=x64 ;;
  arm64) platform=arm64 ;;
  *) echo "there is no Node build for $(dpkg --print-architecture)" >&2; exit 1 ;;
esac
root="$out/rootfs"
rm -rf "$root" "$out/rootfs.tar" "$out/commit"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Only unpacked: there is no shell, no package manager and no set-up program in it.
mmdebstrap --quiet --mode=root --variant=extract --format=directory \
  --include=base-files,libc6,libstdc++6,netbase,tzdata \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --extract-hook='for deb in "$1"/var/cache/apt/archives/*.deb; do dpkg-deb -f "$deb" Package Version Architecture; echo; done >'"$work/debian" \
  trixie "$root" http://deb.debian.org/debian
# What runs nothing here: programs, the maintainers' leftovers, conversions of character sets.
rm -rf "$root"/usr/{sbin,libexec,games,include,lib/init,lib/systemd} "$root"/usr/bin/* "$root"/usr/lib/*-linux-gnu/{gconv,perl-base} \
  "$root"/usr/share/{doc,man,locale,lintian,bug,perl5,debconf,bash-completion,pam*,zoneinfo/right} "$root"/var/{cache,lib/apt,log}/* "$root"/usr/local/*
mkdir -p "$root"/{app,data,tmp,proc,dev,etc/ssl/certs,usr/local/bin}
chmod 1777 "$root/tmp"
printf 'root:x:0:0:root:/root:/nonexistent\nfrontdesk:x:10001:10001:Frontdesk:/app:/nonexistent\n' >"$root/etc/passwd"
printf 'root:x:0:\nfrontdesk:x:10001:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
chown 10001:10001 "$root/data"

(cd "$work" && npm pack --silent "node-linux-$platform@$node" >/dev/null && tar xzf node-*.tgz)
install -m 755 "$work/package/bin/node" "$root/usr/local/bin/node"
"$root/usr/local/bin/node" -p 'require("node:tls").rootCertificates.join("\n")' >"$root/etc/ssl/certs/ca-certificates.crt"

git -C "$repository" archive HEAD package.json package-lock.json api gateway media | tar x -C "$root/app"
(cd "$root/app" && npm ci --omit=dev --no-audit --no-fund --silent)
"$repository/k8s/image/trim.sh" "$root/app" "$platform"
(cd "$root/app" && npm sbom --omit=dev --package-lock-only --sbom-format=cyclonedx --sbom-type=application) >"$work/npm.json"
"$root/usr/local/bin/node" "$repository/k8s/image/sbom.mjs" "$work/npm.json" "$work/debian" "$node" >"$root/app/sbom.cdx.json"
chown -R 0:0 "$root/app"
tar -C "$root" -cf "$out/rootfs.tar" .
git -C "$repository" rev-parse HEAD >"$out/commit"
echo "$(du -sm "$root" | cut -f1) MB in $root"
