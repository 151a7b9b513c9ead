#!/usr/bin/env bash
# podman 4.3 (Debian 12) with conmon 2.1.6: a container with --restart=always that was started from a folder which is
# removed later is not started again when it ends, and nothing says so: its state is an ordinary exit.
#
# conmon keeps the folder that podman was called in, and calls podman in it once the container has ended.
#
# It needs root and Debian 12. podman is unpacked and laid over /usr in a namespace, not installed.
set -euo pipefail
folder=$(mktemp -d /tmp/fXXXX); cd "$folder"
trap 'rm -rf "$folder"' EXIT
chmod 755 .
apt-get -qq download podman=4.3.1+ds1-8+deb12u1+b3 conmon=2.1.6+ds1-1 runc busybox-static golang-github-containers-common \
  libgpgme11 libassuan0 libgpg-error0 libseccomp2 libdevmapper1.02.1 libsubid4 libglib2.0-0 2>/dev/null
mkdir -p root image/bin out
for each in *.deb; do dpkg -x "$each" root; done
cp root/bin/busybox image/bin/sh
cat > inside <<'SH'
set -eu
mount --make-rprivate /
mount -t overlay overlay -o lowerdir="$1/root/usr:/usr" /usr
mount -t tmpfs tmpfs /run
export PODMAN_IGNORE_CGROUPSV1_WARNING=1
engine() {
  podman --root="$1/storage" --runroot="$1/run" --tmpdir="$1/tmp" --storage-driver=vfs --runtime=runc \
    --cgroup-manager=cgroupfs --events-backend=none --network-config-dir="$1/net" "${@:2}"
}
podman --version; conmon --version | head -1
tar -C "$1/image" -c . | engine "$1" import --quiet - localhost/image:1 >/dev/null
for name in kept removed; do
  mkdir "$1/$name"; cd "$1/$name"
  engine "$1" run -d --restart=always --network=none --ulimit=nofile=1024:1024 --ulimit=nproc=1024:1024 \
    -v "$1/out:/out" --name "$name" localhost/image:1 /bin/sh -c "echo >> /out/$name; sleep 3" >/dev/null
done
cd /; rmdir "$1/removed"
for _ in $(seq 120); do [ "$(wc -l < "$1/out/kept")" -ge 3 ] && break; sleep 0.5; done
for name in kept removed; do
  [ "$(wc -l < "$1/out/$name")" -ge 3 ] && runs="3 runs or more" || runs="$(wc -l < "$1/out/$name") run"
  echo "started from a folder that was $name: $runs, $(engine "$1" inspect --format '{{.HostConfig.RestartPolicy.Name}}' $name)"
done
echo "the latter: $(engine "$1" inspect --format '{{.State.Status}} {{.State.ExitCode}} {{.State.Error}}' removed)"
engine "$1" rm --force --time 0 kept removed >/dev/null
SH
unshare -m -p -f --mount-proc --kill-child=KILL bash inside "$folder" | tee seen
diff seen - <<'TXT'
podman version 4.3.1
conmon version 2.1.6
started from a folder that was kept: 3 runs or more, always
started from a folder that was removed: 1 run, always
the latter: exited 0 
TXT
