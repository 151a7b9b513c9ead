#!/usr/bin/env bash
# restic 0.14.0 (Debian 12): a store over S3 that refuses the keys is answered as one without a repository.
#
# The exit code is 1 and the last lines ask whether there is a repository at that place, in both cases. A program that
# goes by either makes a new repository, or calls an old one lost, where a key has expired. The first line alone tells
# them apart, in the words of the store.
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d); cd "$folder"
server=; trap '[ -z "$server" ] || kill $server; rm -rf "$folder"' EXIT
apt-get -qq download restic=0.14.0-1+b5 2>/dev/null
dpkg -x restic_*.deb root
"$python" -m venv env
env/bin/pip install --quiet "moto[server,s3,iam]==5.2.5"
port=$(env/bin/python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# The first three requests, which make a user, need no rights.
INITIAL_NO_AUTH_ACTION_COUNT=3 env/bin/python -m moto.server -H 127.0.0.1 -p "$port" > log 2>&1 & server=$!
cat > user.py <<'PY'
import json
import sys
import time
import urllib.request

import boto3

url = sys.argv[1]
for _ in range(600):
    try:
        urllib.request.urlopen(url + "/moto-api/").close()
        break
    except OSError:
        time.sleep(0.1)
iam = boto3.client("iam", endpoint_url=url, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="a")
iam.create_user(UserName="one")
document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy(UserName="one", PolicyName="all", PolicyDocument=json.dumps(document))
key = iam.create_access_key(UserName="one")["AccessKey"]
print(key["AccessKeyId"], key["SecretAccessKey"])
PY
read -r id secret < <(env/bin/python user.py "http://127.0.0.1:$port")
export RESTIC_REPOSITORY="s3:http://127.0.0.1:$port/bucket" RESTIC_PASSWORD=one RESTIC_CACHE_DIR="$folder/cache"
ask() { # WHAT ID SECRET
  echo "$1:"
  code=0; AWS_ACCESS_KEY_ID=$2 AWS_SECRET_ACCESS_KEY=$3 root/usr/bin/restic snapshots > said 2>&1 || code=$?
  grep -v '^s3:' said | sed '/^$/d; s/^/  /'; echo "  exit code $code"
}
{
  ask "no repository" "$id" "$secret"
  AWS_ACCESS_KEY_ID=$id AWS_SECRET_ACCESS_KEY=$secret root/usr/bin/restic init > /dev/null
  ask "a key that the store does not know" AKIAABCDEFGHIJKLMNOP "$secret"
  ask "another secret" "$id" "${secret%?????}00000"
} | tee seen
diff seen - <<'TXT'
no repository:
  Fatal: unable to open config file: Stat: The specified bucket does not exist
  Is there a repository at the following location?
  exit code 1
a key that the store does not know:
  Fatal: unable to open config file: Stat: The AWS Access Key Id you provided does not exist in our records.
  Is there a repository at the following location?
  exit code 1
another secret:
  Fatal: unable to open config file: Stat: The request signature we calculated does not match the signature you provided. Check your key and signing method.
  Is there a repository at the following location?
  exit code 1
TXT
