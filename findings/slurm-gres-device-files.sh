#!/usr/bin/env bash
# Slurm 22.05 (Debian 12): ConstrainDevices keeps a job off the device files of a gres named gpu, and of no gres of a
# name that Slurm has no plugin for.
#
# Both have File= in gres.conf, both are counted and given out alike, and a job with one hpu may open the files of both.
#
# It needs root, cgroups of version 1 and Debian 12. Slurm is unpacked and laid over /usr in a namespace, not installed.
set -euo pipefail
folder=$(mktemp -d); group=finding-$$; cd "$folder"
trap 'sleep 1; find /sys/fs/cgroup/*/$group -depth -type d -exec rmdir {} + 2>/dev/null || true; rm -rf "$folder"' EXIT
version=22.05.8-4+deb12u3
chmod 755 .
apt-get -qq download "slurmctld=$version" "slurmd=$version" "slurm-client=$version" "slurm-wlm-basic-plugins=$version" \
  munge libmunge2 libhwloc15 2>/dev/null
mkdir -p root etc state spool
for each in *.deb; do dpkg -x "$each" root; done
# As the alternatives of the packages name them.
for each in slurmd slurmctld slurmstepd; do ln -s "$each-wlm" "root/usr/sbin/$each"; done
for each in devices freezer cpuset memory; do mkdir "/sys/fs/cgroup/$each/$group"; done
for each in cpus mems; do cat "/sys/fs/cgroup/cpuset/cpuset.$each" > "/sys/fs/cgroup/cpuset/$group/cpuset.$each"; done
# Nothing can be taken out of a rule for all devices.
echo a > "/sys/fs/cgroup/devices/$group/devices.deny"
for each in "c 1:*" "c 5:*" "c 136:*" "b *:*" "c 261:0" "c 261:1" "c 261:2" "c 261:3"; do
  echo "$each rwm" > "/sys/fs/cgroup/devices/$group/devices.allow"
done
head -c 128 /dev/urandom > key; chmod 600 key
cat > etc/slurm.conf <<CONF
ClusterName=c
SlurmctldHost=node
SlurmUser=root
AuthInfo=socket=/run/munge/munge.socket.2
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
SelectType=select/cons_tres
MpiDefault=none
GresTypes=gpu,hpu
NodeName=node NodeAddr=10.9.8.7 CPUs=1 Gres=gpu:2,hpu:2
PartitionName=p Nodes=ALL Default=YES
CONF
echo "CgroupPlugin=cgroup/v1
CgroupAutomount=no
ConstrainDevices=yes" > etc/cgroup.conf
echo "Name=gpu File=/run/dev/g[0-1] Flags=no_gpu_env
Name=hpu File=/run/dev/h[0-1]" > etc/gres.conf
cat > inside <<'SH'
set -eu
mount --make-rprivate /
mount -t overlay overlay -o lowerdir="$1/root/usr:/usr" /usr
mkdir -p "$1/over/slurm"
mount -t overlay overlay -o lowerdir="$1/over:/etc" /etc
mount --bind "$1/etc" /etc/slurm
for each in devices freezer cpuset memory; do
  echo $$ > "/sys/fs/cgroup/$each/$2/tasks"
  mount --bind "/sys/fs/cgroup/$each/$2" "/sys/fs/cgroup/$each"
done
mount -t tmpfs -o mode=755,dev tmpfs /run
mkdir /run/munge /run/dev
mknod /run/dev/g0 c 261 0; mknod /run/dev/g1 c 261 1; mknod /run/dev/h0 c 261 2; mknod /run/dev/h1 c 261 3
hostname node; ip link set lo up
# With a loopback address alone the daemons find none to listen on.
ip link add v0 type veth peer name v1; ip addr add 10.9.8.7/24 dev v0; ip link set v0 up; ip link set v1 up
printf '127.0.0.1 localhost\n10.9.8.7 node\n' > /run/hosts; mount --bind /run/hosts /etc/hosts
munged --force --key-file="$1/key" --socket=/run/munge/munge.socket.2 --seed-file=/run/seed --pid-file=/run/munge/pid \
  --log-file=/run/log
slurmctld >/dev/null 2>&1; slurmd >/dev/null 2>&1
for _ in $(seq 100); do sinfo -h -o %T 2>/dev/null | grep -q idle && break; sleep 0.2; done
echo "$(slurmd -V): $(sinfo -h -o %G)"
for name in gpu hpu; do
  # No driver has these numbers: what may be opened is no device, what may not is not permitted.
  srun -Q --gres=$name:1 sh -c "for each in /run/dev/${name%pu}*; do (: < \$each) 2>&1; done; true" |
    sed -n "s|.*/run/dev/\(..\): \(.*\)|--gres=$name:1 \1: \2|p"
done
SH
unshare -m -n -u -p -f --mount-proc --kill-child=KILL bash inside "$folder" "$group" | tee seen
diff seen - <<'TXT'
slurm-wlm 22.05.8: gpu:2,hpu:2
--gres=gpu:1 g0: No such device or address
--gres=gpu:1 g1: Operation not permitted
--gres=hpu:1 h0: No such device or address
--gres=hpu:1 h1: No such device or address
TXT
