#!/usr/bin/env bash
# Joins the machine's local NVMe disks into one striped volume and mounts it at $1. Runs at every start: what is on
# local disks is gone after the machine was stopped. Disks that hold anything else are never touched.
set -euo pipefail
target=$1
device=/dev/md/scratch

mountpoint -q "$target" && exit 0

# Local disks are NVMe, whole, unmounted, without partitions and without a file system of somebody else's. A cloud's
# network volumes are NVMe too on AWS and say so in their model.
local_disks() {
    lsblk --nodeps --noheadings --paths --output NAME,TYPE,MODEL | while read -r name type model; do
        [[ $type == disk && $name == /dev/nvme* ]] || continue
        [[ $model == *"Elastic Block Store"* || $model == *"PersistentDisk"* || $model == *"Hyperdisk"* ]] && continue
        [[ $(lsblk --noheadings --output NAME "$name" | wc -l) == 1 ]] || continue
        [[ -z $(lsblk --nodeps --noheadings --output MOUNTPOINT "$name") ]] || continue
        [[ -z $(blkid --output value --match-tag TYPE "$name" || true) ]] || continue
        echo "$name"
    done
}

mdadm --assemble --scan 2>/dev/null || true
if [[ ! -e $device ]]; then
    mapfile -t disks < <(local_disks)
    if ((${#disks[@]} == 0)); then
        echo "no local NVMe disk: $target stays on the root volume"
        mkdir -p "$target"
        exit 0
    fi
    mdadm --create "$device" --run --force --homehost=any --level=0 --raid-devices="${#disks[@]}" "${disks[@]}"
fi
blkid "$device" >/dev/null || mkfs.ext4 -q -E lazy_itable_init=1,nodiscard "$device"
mkdir -p "$target"
mount -o noatime "$device" "$target"
chmod 1777 "$target"
