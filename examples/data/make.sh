#!/usr/bin/env bash
# Makes everything in this folder again from Debian 12 packages; the result is the same on every machine with them.
# usage: make.sh [WORK]   downloads and unpacks about 600 MB into WORK (default: a temporary folder), installs
#                         python3-pil and python3-numpy if they are missing (root or sudo)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${1:-$(mktemp -d)}
packages=(forensics-samples-files gcompris-qt-data krank libjxl-testdata lomiri-wallpapers-16.04
  lomiri-wallpapers-20.04 puzzle-jigsaw python-kivy-examples python3-scipy python3-skimage python3-sklearn)

for tool in python3-pil python3-numpy; do
  dpkg-query -W -f='${db:Status-Status}' "$tool" 2>/dev/null | grep -q '^installed$' ||
    $([ "$(id -u)" = 0 ] || echo sudo) apt-get -qq install -y --no-install-recommends "$tool"
done
mkdir -p "$work" && cd "$work"
for package in "${packages[@]}"; do
  [ ! -d "$package" ] || continue
  compgen -G "${package}_*.deb" >/dev/null || apt-get -qq download "$package"
  mkdir "$package.part" && dpkg-deb -x "${package}"_*.deb "$package.part" && mv "$package.part" "$package"
done
/usr/bin/python3 "$here/make.py" "$work" "$here"
