#!/usr/bin/env bash
# Powers the machine off when its time is over: lifetime TTL IDLE, in seconds, 0 for never. Called each minute.
# What counts is the time that the machine runs, and not the clock, which may be wrong at the first boot. systemd stops
# jobs with SIGTERM and waits for them, so that they save.
set -euo pipefail
ttl=$1
idle=$2
proc=${GAUDI3_PROC:-/proc}
kept=${GAUDI3_KEPT:-/var/lib/gaudi3-lifetime} # outlives a reboot
boot=${GAUDI3_BOOT:-/run/gaudi3-lifetime}     # does not

mkdir -p "$kept" "$boot"
read -r uptime _ <"$proc/uptime"
uptime=${uptime%.*}
passed=$((uptime - $(cat "$boot/uptime" 2>/dev/null || echo 0)))
echo "$uptime" >"$boot/uptime"

# Adds what passed to a counter, and prints it.
count() {
    local total=$(($(cat "$1" 2>/dev/null || echo 0) + passed))
    echo "$total" >"$1.new"
    mv "$1.new" "$1"
    echo "$total"
}

# A process has an accelerator open, or somebody is logged in, as Ansible is while it works.
in_use() {
    local link
    for link in "$proc"/[0-9]*/fd/*; do
        case $(readlink "$link" 2>/dev/null || true) in
            /dev/accel/accel[0-9]* | /dev/nvidia[0-9]*) return 0 ;;
        esac
    done
    [[ -n $(loginctl list-sessions --no-legend 2>/dev/null || true) ]]
}

reason=""
if ((ttl > 0)) && (($(count "$kept/running") >= ttl)); then
    reason="it has run for its $ttl seconds (ttl)"
fi
if ((idle > 0)); then
    if in_use; then
        rm -f "$boot/idle"
    elif (($(count "$boot/idle") >= idle)); then
        reason="${reason:-nothing has used it for $idle seconds (idle_shutdown)}"
    fi
fi
if [[ -n $reason ]]; then
    echo "This machine powers itself off, as $reason."
    systemctl poweroff
fi
