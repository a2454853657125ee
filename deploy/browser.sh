#!/bin/sh
# See that a Chromium is there for the test of the page, where it can be had from Debian. Never
# fatal: without one that test is skipped and says why.
set -u
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then exit 0; fi
echo "ratchet: installing Chromium for the test of the page" >&2
export DEBIAN_FRONTEND=noninteractive
install() { timeout 300 apt-get install --yes --quiet --no-install-recommends chromium >/dev/null 2>&1; }
install || { timeout 120 apt-get update --quiet >/dev/null 2>&1 && install; } ||
    echo "ratchet: Chromium could not be installed; the test of the page will be skipped" >&2
exit 0
