"""Has Prometheus' own promtool check the alert rules: `./test alerts`."""
