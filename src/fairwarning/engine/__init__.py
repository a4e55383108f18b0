"""The only writer: commands in, transactions on one scope, timers, drivers, a change feed."""
