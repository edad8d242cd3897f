#!/usr/bin/env bash
# check_deb.sh BUILD  Makes the Debian package of BUILD, installs it below a folder, runs the program there and removes
# the package again.
set -euo pipefail
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
fail() {
  printf 'check_deb: %s\n' "$*" >&2
  exit 1
}
# Quick to compress: the package is thrown away.
(cd "$build" && cpack -G DEB -B "$work" -D CPACK_DEBIAN_COMPRESSION_TYPE=none) >"$work/log" 2>&1 ||
  { cat "$work/log"; fail "cpack failed"; }
package=$(echo "$work"/heddle_*.deb)
depends=$(dpkg-deb -f "$package" Depends)
for name in libc6 libstdc++6 libfmt libprotobuf libsqlite3-0 libssl; do
  [[ $depends == *"$name"* ]] || fail "it does not depend on $name: $depends"
done

mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers} "$root/var/log"
touch "$root"/var/lib/dpkg/{status,available}
# The libraries of the system are this system's, which the folder does not have.
in_root() { dpkg --root="$root" --force-not-root --force-depends --force-bad-path "$@" >"$work/log" 2>&1; }
in_root -i "$package" || { cat "$work/log"; fail "dpkg cannot install it"; }
env -i "$root/usr/bin/heddle" doctor
in_root -r heddle || { cat "$work/log"; fail "dpkg cannot remove it"; }
left=$(find "$root/usr" -type f 2>/dev/null || true)
[ -z "$left" ] || fail "files are left: $left"
