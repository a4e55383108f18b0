#!/bin/sh
# As deploy/README.md says, with wheels in the place of an index.
set -eu
cd "$(dirname "$0")/.."
/opt/fairwarning/bin/pip install --quiet --no-index --find-links wheels 'fairwarning-client[logind]'
install -D -m 0644 guest/agent.toml /etc/fairwarning/agent.toml
/opt/fairwarning/bin/fairwarning-agent check-config /etc/fairwarning/agent.toml
install -m 0644 deploy/fairwarning-agent.service guest/worker.service /etc/systemd/system/
systemctl daemon-reload
systemctl start worker
