#!/bin/sh
# Before the kernel's package: its ramdisk needs only what finds the disk, and boots faster so.
set -eu
mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d"
echo MODULES=list > "$1/etc/initramfs-tools/conf.d/small"
printf '%s\n' virtio_pci virtio_blk ext4 > "$1/usr/share/initramfs-tools/modules.d/disk"
