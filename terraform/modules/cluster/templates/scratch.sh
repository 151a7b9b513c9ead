#!/usr/bin/env bash
# Joins the machine's local NVMe disks into one striped volume and mounts it at $1. Runs at every start: what is on
# local disks is gone after the machine was stopped. Disks that hold anything else are never touched.
# Stripes by mdadm, which most images have; without it, it is installed where packages can be reached, else LVM does it,
# else the first disk alone is taken.
set -euo pipefail
target=$1
striped=/dev/md/scratch
label=gaudi3-scratch

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

has() { command -v "$1" >/dev/null; }

# The device that is mounted, of the disks given. Without a way to the packages this gives up after a minute.
join() {
    if ! has mdadm && has apt-get; then
        timeout 60 apt-get -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=10 update >&2 &&
            DEBIAN_FRONTEND=noninteractive timeout 120 apt-get -qq -y install mdadm >&2 || true
    fi
    if has mdadm; then
        mdadm --create "$striped" --run --force --homehost=any --level=0 --raid-devices="$#" "$@" >&2
        echo "$striped"
    elif has lvcreate; then
        vgcreate "$label" "$@" >&2
        lvcreate --yes --extents 100%FREE --stripes "$#" --name data "$label" >&2
        echo "/dev/$label/data"
    else
        echo "neither mdadm nor LVM is here: $target gets $1 alone, of $# disks" >&2
        echo "$1"
    fi
}

if has mdadm; then mdadm --assemble --scan 2>/dev/null || true; fi
device=$(blkid --label "$label" || true)
[[ -e $striped ]] && device=$striped
if [[ -z $device ]]; then
    mapfile -t disks < <(local_disks)
    if ((${#disks[@]} == 0)); then
        echo "no local NVMe disk: $target stays on the root volume"
        mkdir -p "$target"
        exit 0
    fi
    device=$(join "${disks[@]}")
fi
blkid "$device" >/dev/null || mkfs.ext4 -q -L "$label" -E lazy_itable_init=1,nodiscard "$device"
mkdir -p "$target"
mount -o noatime "$device" "$target"
chmod 1777 "$target"
