#!/usr/bin/env bash
# ansible-core 2.17 and 2.18: the config lookup's answer with its origin becomes text in a variable; from 2.19 on it is a list.
#
# `lookup('ansible.builtin.config', NAME, show_origin=true)` is a pair of value and origin. Used in the expression itself, its
# first element is the value in all versions. Kept in a variable, the pair is text until 2.18, whose first element is "(":
# a list in a variable stays a list, and a tuple does not. Without an error the bracket goes where the value should. `| list`
# in the variable's own expression helps.
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
cat > play.yml <<'YML'
- hosts: localhost
  gather_facts: false
  vars:
    kept: "{{ lookup('ansible.builtin.config', 'DEFAULT_FORKS', show_origin=true) }}"
    listed: "{{ lookup('ansible.builtin.config', 'DEFAULT_FORKS', show_origin=true) | list }}"
  tasks:
    - ansible.builtin.debug:
        msg: "SEEN direct {{ lookup('ansible.builtin.config', 'DEFAULT_FORKS', show_origin=true)[0] }} kept {{ kept[0] }} listed {{ listed[0] }}"
YML
for version in 2.17.14 2.18.9 2.19.3; do
  "$python" -m venv "$version"
  "$version/bin/pip" install --quiet "ansible-core==$version"
  ANSIBLE_HOME="$folder/home" "$version/bin/ansible-playbook" play.yml > out 2>&1
  echo "$version $(grep -o 'SEEN [^"]*' out)"
done | tee seen
diff seen - <<'TXT'
2.17.14 SEEN direct 5 kept ( listed 5
2.18.9 SEEN direct 5 kept ( listed 5
2.19.3 SEEN direct 5 kept 5 listed 5
TXT
