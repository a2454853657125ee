#!/bin/sh
# See that Prometheus and promtool are there for the tests of metrics, alerts and dashboards, where they can be
# had from Debian. The package is unpacked into .ratchet/tools, not installed: that would start a server. Never
# fatal: without them those tests are skipped and say why.
set -u
tools=$(cd "$(dirname "$0")/.." && pwd)/.ratchet/tools
if command -v promtool >/dev/null 2>&1 && command -v prometheus >/dev/null 2>&1; then exit 0; fi
if [ -x "$tools/usr/bin/promtool" ] && [ -x "$tools/usr/bin/prometheus" ]; then exit 0; fi
if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-deb >/dev/null 2>&1; then exit 0; fi
echo "ratchet: fetching Prometheus for the tests of what it reads" >&2
folder=$(mktemp -d) || exit 0
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
fetch() { (cd "$folder" && timeout 300 apt-get download --quiet prometheus >/dev/null 2>&1); }
refresh() { [ "$(id -u)" -eq 0 ] && timeout 120 apt-get update --quiet >/dev/null 2>&1; }
if fetch || { refresh && fetch; }; then
    mkdir -p "$tools" && for package in "$folder"/prometheus_*.deb; do
        dpkg-deb --fsys-tarfile "$package" |
            tar --extract --directory "$tools" ./usr/bin/prometheus ./usr/bin/promtool && exit 0
    done
fi
echo "ratchet: Prometheus could not be fetched; tests that need it will be skipped" >&2
exit 0
