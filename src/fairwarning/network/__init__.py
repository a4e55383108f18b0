"""The network between instances and the metadata endpoint: firewall rules, DHCP and a proxy."""
