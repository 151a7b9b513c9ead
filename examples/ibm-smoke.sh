#!/usr/bin/env bash
# One Gaudi 3 node on IBM Cloud: made, looked at, destroyed. It leaves a file without secrets that you can send back.
#
#   IC_API_KEY=... examples/ibm-smoke.sh --key ~/.ssh/id_ed25519.pub --region us-east --from 198.51.100.7/32
#
# The node costs money from `apply` to the end of `destroy`, and a quota request usually has to come first (docs/clouds/ibm.md).
# It runs in a copy of terraform/ and destroys what it made however it ends, unless you say --keep.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: ibm-smoke.sh --key FILE.pub --from CIDR [--region REGION] [--zone ZONE] [--name NAME] [--out DIR]
                    [--plan-only] [--no-ssh] [--keep] [--yes]
  --key        public key that may log in; the private one is beside it
  --from       your own address, such as 198.51.100.7/32
  --plan-only  end after the plan: nothing is made, nothing costs
  --no-ssh     do not log in to the node
  --keep       leave everything running
  --yes        do not ask before the apply
TEXT
}

key='' from='' region=us-east zone='' name=smoke out='' plan_only='' no_ssh='' keep='' yes=''
while (($#)); do
    case $1 in
        --key) key=$2 && shift ;;
        --from) from=$2 && shift ;;
        --region) region=$2 && shift ;;
        --zone) zone=$2 && shift ;;
        --name) name=$2 && shift ;;
        --out) out=$2 && shift ;;
        --plan-only) plan_only=1 ;;
        --no-ssh) no_ssh=1 ;;
        --keep) keep=1 ;;
        --yes) yes=1 ;;
        -h | --help) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
    esac
    shift
done

fail() {
    echo "ibm-smoke: $*" >&2
    exit 2
}
[[ -n ${IC_API_KEY:-${IBMCLOUD_API_KEY:-}} ]] || fail "no credentials: set IC_API_KEY"
[[ -r $key ]] || fail "there is no public key ${key:-(none given)}: give it with --key"
[[ -n $from ]] || fail "nobody could log in: give your own address with --from"
command -v terraform >/dev/null || fail "terraform is not on PATH: see https://developer.hashicorp.com/terraform/install"

umask 077
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
out=${out:-$PWD/ibm-smoke-$(date -u +%Y%m%dT%H%M%SZ)}
mkdir -p "$out/report"
out=$(cd -- "$out" && pwd)
key=$(cd -- "$(dirname -- "$key")" && pwd)/$(basename -- "$key")
# A copy: the lock file and the state of this run are nobody else's.
mkdir "$out/terraform" || fail "$out is there already: give another folder with --out"
(cd "$here/terraform" && tar --exclude=.terraform --exclude='*.tfstate*' --exclude=.terraform.lock.hcl -cf - .) | tar -xf - -C "$out/terraform"
cd "$out/terraform/ibm"
export TF_IN_AUTOMATION=1 TF_INPUT=0

TF_VAR_ssh_public_key=$(<"$key")
export TF_VAR_ssh_public_key
variables=(-var cluster_size=8 -var instance_type=gx3d-160x1792x8gaudi3 -var "name=$name" -var "region=$region"
    -var "zone=$zone" -var public_entry=monitor -var "allowed_cidrs=[\"$from\"]" -var flow_logs=false)

# An account's number is in every CRN; keys and tokens are not printed by Terraform, and are taken out anyway.
clean() {
    sed -E -e 's#a/[0-9a-f]{32}#a/ACCOUNT#g' -e "s#${IC_API_KEY:-none-given}#KEY#g" -e "s#${IBMCLOUD_API_KEY:-none-given}#KEY#g" \
        -e 's#(AWS_[A-Z_]+=).*#\1TAKEN-OUT#'
}

# Run a step: its output, its code and its seconds go into the report.
step() {
    local label=$1 began code=0
    shift
    began=$(date +%s)
    "$@" 2>&1 | clean | tee "$out/report/$label.txt" || code=$?
    echo "$label exit=$code seconds=$(($(date +%s) - began))" | tee -a "$out/report/steps.txt"
    return "$code"
}

made=''
finish() {
    local code=$?
    trap - EXIT
    if [[ -n $made && -z $keep ]]; then
        # What a first try could not delete yet, a second one can.
        step destroy terraform destroy -auto-approve -no-color "${variables[@]}" -var teardown=true ||
            step destroy-again terraform destroy -auto-approve -no-color "${variables[@]}" -var teardown=true || code=1
        terraform state list >"$out/report/left.txt" || code=1
        if [[ -s $out/report/left.txt ]]; then
            echo "ibm-smoke: this is left, and may cost money: $(tr '\n' ' ' <"$out/report/left.txt")" >&2
            code=1
        fi
    fi
    tar -C "$out" -czf "$out/ibm-smoke-report.tar.gz" report
    echo "Report, without secrets: $out/ibm-smoke-report.tar.gz (exit code $code)"
    [[ -z $keep || -z $made ]] || echo "Everything is left running. State: $out/terraform/ibm"
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

step version terraform version
step init terraform init -no-color
grep -A1 'IBM-Cloud\|ibm-cloud' .terraform.lock.hcl | tee "$out/report/provider.txt"
step validate terraform validate -no-color
step plan terraform plan -no-color "${variables[@]}"
[[ -z $plan_only ]] || exit 0

if [[ -z $yes ]]; then
    read -r -p "This rents a node with 8 Gaudi 3 until it is destroyed again. Write '$name' to go on: " answer
    [[ $answer == "$name" ]] || fail "nothing was made"
fi
made=1
step apply terraform apply -auto-approve -no-color "${variables[@]}"
# Nothing is left to change after an apply: exit code 2 would say so.
step second-plan terraform plan -detailed-exitcode -no-color "${variables[@]}"
for output in cluster cluster_endpoints; do
    terraform output -no-color -json "$output" | clean >"$out/report/$output.json"
done

if [[ -z $no_ssh ]]; then
    jump_host=$(terraform output -json cluster | sed -nE 's/.*"jump_host":"([^"]+)".*/\1/p')
    cat >"$out/ssh_config" <<TEXT
Host *
  StrictHostKeyChecking accept-new
  UserKnownHostsFile $out/known_hosts
  IdentityFile ${key%.pub}
  ConnectTimeout 15
TEXT
    master=$(terraform output -raw master_ip)
    user=${jump_host%@*}
    for _try in {1..40}; do
        ssh -F "$out/ssh_config" -J "$jump_host" "$user@$master" true && break
        sleep 15
    done
    step node ssh -F "$out/ssh_config" -J "$jump_host" "$user@$master" \
        'cloud-init status --wait; uname -r; nproc; lspci -nn -d 1da3:; ip -br link; lsblk -d -o NAME,SIZE,MODEL; df -h /scratch'
fi
