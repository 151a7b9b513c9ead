#!/bin/sh
# Installs simulated PyTorch: what the README beside this file says, with pip, into the Python that is active.
set -eu

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
if [ $# -ne 3 ]; then
  echo "usage: ./install.sh RELEASE BUILD fork|public" >&2
  exit 2
fi
read -r release build < "$here/release"
wanted=$(cat "$here/python")
case $3 in
  fork | public) ;;
  *) fail "The third argument was $3: give fork or public." ;;
esac
[ "$1 $2" = "$release $build" ] ||
  fail "Release $1 build $2 was asked for, this tarball is of $release build $build."
found=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "There is no python3: install it."
[ "$found" = "$wanted" ] ||
  fail "The wheels are for Python $wanted, python3 is $found: activate an environment of Python $wanted."
python3 -m pip --version > /dev/null 2>&1 || fail "python3 has no pip: install it, or activate an environment that has it."
# The index is left out, so that nothing but the pinned wheels of this folder can be installed.
cd "$here"
python3 -m pip install --no-index --require-hashes --requirement requirements.txt
cat README
