#!/usr/bin/env bash
# ansible-core 2.17 to 2.21: an error in the `when` of a meta task ends the run for all hosts, and names none of them.
#
# An error in the `when` of any other task fails its own host; the others go on, and the recap names it. In the `when` of
# `meta: end_host` an error of one host ends the run at once: the host beside it does not come to its next task, and
# `two`, whose value it was, is named nowhere.
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
cat > inventory.yml <<'YML'
all:
  vars: {ansible_connection: local, ansible_python_interpreter: /usr/bin/python3}
  hosts:
    one: {answer: {done: true}}
    two: {answer: {}}
YML
for task in "ansible.builtin.meta: end_host" "ansible.builtin.debug: {msg: skipped}"; do
  cat > "$(echo "$task" | cut -c17-20).yml" <<YML
- hosts: all
  gather_facts: false
  tasks:
    - $task
      when: not answer.done
    - ansible.builtin.debug:
        msg: "SEEN {{ inventory_hostname }} goes on"
YML
done
for version in 2.17.14 2.21.5; do
  "$python" -m venv "$version"
  "$version/bin/pip" install --quiet "ansible-core==$version"
  for play in meta debu; do
    ANSIBLE_HOME="$folder/home" "$version/bin/ansible-playbook" -i inventory.yml "$play.yml" > out 2>&1 || true
    echo "$version $play: $(grep -o 'SEEN [^"]*' out | tr '\n' ';') named: $(grep -oE '\b(one|two)\b' out | sort -u | tr '\n' ' ')"
  done
done | tee seen
diff seen - <<'TXT'
2.17.14 meta:  named: one 
2.17.14 debu: SEEN one goes on; named: one two 
2.21.5 meta:  named: one 
2.21.5 debu: SEEN one goes on; named: one two 
TXT
