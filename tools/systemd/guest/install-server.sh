#!/bin/sh
# As deploy/README.md says, with files that are installed and compiled already.
set -eu
cd "$(dirname "$0")/.."
cp -a installed/. "$(echo /opt/fairwarning/lib/python3*/site-packages)"
printf '#!/opt/fairwarning/bin/python3\nfrom fairwarning.cli.main import main\nmain()\n' > /opt/fairwarning/bin/fairwarning
chmod 0755 /opt/fairwarning/bin/fairwarning
install -D -m 0644 guest/serve.toml /etc/fairwarning/serve.toml
install -D -m 0600 guest/fairwarning.env /etc/fairwarning/fairwarning.env
install -m 0644 deploy/fairwarning.service /etc/systemd/system/
systemctl daemon-reload
