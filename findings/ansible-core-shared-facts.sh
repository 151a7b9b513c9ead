#!/usr/bin/env bash
# ansible-core 2.21: a module that runs once and returns facts gives all hosts of the play one and the same store of them.
#
# Facts of a task with run_once are set for each host of the play, as documented. From 2.21 on these hosts share one
# mapping afterwards: a fact that a later task finds on one host alone is a fact of all others, too. With 2.20 each host
# keeps its own. A condition such as `ansible_facts.x is defined` then holds on hosts that were never asked.
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
cat > inventory <<'INI'
[all]
one ansible_connection=local ansible_python_interpreter=/usr/bin/python3
two ansible_connection=local ansible_python_interpreter=/usr/bin/python3
INI
cat > play.yml <<'YML'
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.setup:
        gather_subset: [min]
      run_once: true
    - ansible.builtin.getent:
        database: passwd
        key: root
      when: inventory_hostname == 'one'
    - ansible.builtin.debug:
        msg: "SEEN {{ inventory_hostname }}: {{ ansible_facts.getent_passwd | default({}) | list }}"
YML
for version in 2.20.10 2.21.5; do
  "$python" -m venv "$version"
  "$version/bin/pip" install --quiet "ansible-core==$version"
  ANSIBLE_HOME="$folder/home" "$version/bin/ansible-playbook" -i inventory play.yml | grep -o 'SEEN [^"]*' | sort > "seen-$version"
  echo "ansible-core $version:"; cat "seen-$version"
done
diff seen-2.20.10 - <<'TXT'
SEEN one: ['root']
SEEN two: []
TXT
diff seen-2.21.5 - <<'TXT'
SEEN one: ['root']
SEEN two: ['root']
TXT
