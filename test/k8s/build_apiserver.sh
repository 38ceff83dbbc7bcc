#!/usr/bin/env bash
# Builds kube-apiserver, kubectl and etcd from their Go modules into the folder that is given, once:
# about ten minutes on two cores. Prints the folder. `go install` refuses these modules, because they
# replace others; so a module of our own names the same replacements.
set -euo pipefail
kubernetes=1.34.1
etcd=3.6.4
out="${1:-${XDG_CACHE_HOME:-$HOME/.cache}/frontdesk-ci}/kubernetes-$kubernetes"
if [ -x "$out/kube-apiserver" ] && [ -x "$out/kubectl" ] && [ -x "$out/etcd" ]; then
  echo "$out"
  exit 0
fi
command -v go >/dev/null || { echo "there is no Go to build kube-apiserver with" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOFLAGS=-mod=mod
mkdir -p "$out"

module() { # module NAME VERSION…: writes go.mod with what it requires
  printf 'module frontdesk.invalid/verify\ngo 1.24.0\nrequire %s %s\n' "$1" "$2" >go.mod
}

# Kubernetes' own parts are one release: each k8s.io module that is required as v0.0.0 is v0.<minor>.<patch>.
module k8s.io/kubernetes "v$kubernetes"
published=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
sed -nE 's#^\s*(k8s\.io/[a-z-]+) v0\.0\.0$#replace \1 => \1 v0.'"${kubernetes#1.}"'#p' "$published" | sort -u >>go.mod
printf 'package main\nimport _ "k8s.io/kubernetes/cmd/kube-apiserver"\nfunc main() {}\n' >main.go
go build -trimpath -ldflags="-s -w" -o "$out/" k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl >&2

module go.etcd.io/etcd/server/v3 "v$etcd"
go build -trimpath -ldflags="-s -w" -o "$out/etcd" go.etcd.io/etcd/server/v3 >&2
echo "$out"
