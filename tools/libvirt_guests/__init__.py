"""The driver libvirt on real libvirtds with QEMU guests; `./test libvirt` runs it."""
