"""Runs the real engine in simulated worlds, with simulated time, faults and crashes.

`python -m fairwarning.simulation --seeds N` runs one world for each seed. Checkers check every
promise after every step. If a world fails, its steps are reduced to a short trace.
"""
