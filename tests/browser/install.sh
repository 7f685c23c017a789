#!/usr/bin/env bash
# Install a browser and what drives it, for the tests that open our reports. Prints the virtual environment's path last.
#
#   tests/browser/install.sh            half a minute, 0.2 GB disk and Chromium; at once when it is there
#   tests/browser/install.sh --where    only print where it is or would be
#
# Playwright lies in a cache outside the checkout, under a name that changes with this file; HEXFLOW_BROWSER_VENV names
# another place. The browser is, of these, the first that there is: the one that HEXFLOW_BROWSER names, a Chromium or
# Chrome on the PATH, the system's package (Debian's, as root), or the one that Playwright fetches.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
version=1.65.2
key=$(sha256sum < "$here/install.sh" | cut -c1-12)
venv=${HEXFLOW_BROWSER_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/hexflow/browser-$key}
[ "${1:-}" = --where ] && { echo "$venv"; exit 0; }

mkdir -p "$(dirname "$venv")"
exec 9>"$venv.lock"
flock 9                                   # two runs at once: the second waits and finds it installed
browser=$(cat "$venv/.browser" 2>/dev/null || true)
if [ -n "$browser" ] && [ -x "$browser" ]; then echo "$venv"; exit 0; fi

echo "installing playwright $version into $venv" >&2
rm -rf "$venv"
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "playwright==$version"

found() {
  local name
  for name in "${HEXFLOW_BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable; do
    if [ -n "$name" ] && "$name" --version >/dev/null 2>&1; then command -v "$name"; return; fi
  done
  false
}
packages() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return
  echo "installing chromium" >&2
  local install=(apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core)
  export DEBIAN_FRONTEND=noninteractive
  { "${install[@]}" || { apt-get update -q && "${install[@]}"; }; } >/dev/null 2>&1
}
fetched() {
  export PLAYWRIGHT_BROWSERS_PATH=$venv/browsers
  "$venv/bin/playwright" install chromium >&2 || return
  "$venv/bin/python" -c 'from playwright.sync_api import sync_playwright
with sync_playwright() as program:
    print(program.chromium.executable_path)'
}
browser=$(found || { packages && found; } || fetched) || {
  echo "no browser is to be had; install Chromium or Chrome yourself, or name one with HEXFLOW_BROWSER=…" >&2; exit 1; }
"$browser" --version 2>/dev/null >&2
echo "$browser" > "$venv/.browser"
echo "$venv"
