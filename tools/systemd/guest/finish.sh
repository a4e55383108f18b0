#!/bin/sh
# A network, a journal that survives reboots, an empty venv, and nothing that only costs time.
set -eu
echo vm > "$1/etc/hostname"
echo "127.0.0.1 localhost vm" > "$1/etc/hosts"
cat > "$1/etc/systemd/network/wire.network" <<END
[Match]
Type=ether
[Network]
Address=169.254.0.15/16
LinkLocalAddressing=no
IPv6AcceptRA=no
END
mkdir -p "$1/var/log/journal"
chroot "$1" systemctl enable systemd-networkd.service systemd-networkd-wait-online.service
chroot "$1" systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
    e2scrub_all.timer e2scrub_reap.service fstrim.timer getty@tty1.service \
    serial-getty@ttyS0.service systemd-binfmt.service
chroot "$1" python3 -m venv /opt/fairwarning
# Debian leaves pip uncompiled, and an emulated machine is slow at it.
chroot "$1" python3 -m compileall -q /opt/fairwarning
