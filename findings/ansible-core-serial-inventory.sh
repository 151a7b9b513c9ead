#!/usr/bin/env bash
# ansible-core 2.17 to 2.21: `serial` of a play does not see the inventory's variables, and no `hostvars` in the first play.
#
# `serial: "{{ batch | default('100%') }}"` with `batch: 1` for all hosts of the inventory takes all hosts at once and
# warns of nothing, while a task of the same play sees 1. Given with -e the batches have one host. Through `hostvars` of a
# host it is seen, but not in the first play of a run, where `hostvars` is not there yet.
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
cat > inventory.yml <<'YML'
all:
  vars: {ansible_connection: local, ansible_python_interpreter: /usr/bin/python3, batch: 1}
  hosts: {one: , two: }
YML
for given in "batch | default('100%')" "hostvars[groups['all'][0]].batch | default('100%')"; do
  : > "${given:0:5}.yml"
  for play in first second; do
    cat >> "${given:0:5}.yml" <<YML
- hosts: all
  gather_facts: false
  serial: "{{ $given }}"
  tasks:
    - ansible.builtin.debug:
        msg: "SEEN $play {{ ansible_play_batch | length }} at once, task sees {{ batch }}"
      run_once: true
YML
  done
done
for version in 2.17.14 2.19.14 2.21.5; do
  "$python" -m venv "$version"
  "$version/bin/pip" install --quiet "ansible-core==$version"
  for call in "batch.yml" "batch.yml -e batch=1" "hostv.yml"; do
    # shellcheck disable=SC2086
    ANSIBLE_HOME="$folder/home" "$version/bin/ansible-playbook" -i inventory.yml $call > out 2>&1 || true
    echo "$version $call: $(grep -o 'SEEN [^"]*' out | sort -u | tr '\n' ';') warnings: $(grep -c WARNING out || true)"
  done
done | tee seen
diff seen - <<'TXT'
2.17.14 batch.yml: SEEN first 2 at once, task sees 1;SEEN second 2 at once, task sees 1; warnings: 0
2.17.14 batch.yml -e batch=1: SEEN first 1 at once, task sees 1;SEEN second 1 at once, task sees 1; warnings: 0
2.17.14 hostv.yml: SEEN first 2 at once, task sees 1;SEEN second 1 at once, task sees 1; warnings: 0
2.19.14 batch.yml: SEEN first 2 at once, task sees 1;SEEN second 2 at once, task sees 1; warnings: 0
2.19.14 batch.yml -e batch=1: SEEN first 1 at once, task sees 1;SEEN second 1 at once, task sees 1; warnings: 0
2.19.14 hostv.yml: SEEN first 2 at once, task sees 1;SEEN second 1 at once, task sees 1; warnings: 0
2.21.5 batch.yml: SEEN first 2 at once, task sees 1;SEEN second 2 at once, task sees 1; warnings: 0
2.21.5 batch.yml -e batch=1: SEEN first 1 at once, task sees 1;SEEN second 1 at once, task sees 1; warnings: 0
2.21.5 hostv.yml: SEEN first 2 at once, task sees 1;SEEN second 1 at once, task sees 1; warnings: 0
TXT
