"""A world in a seed: the real engine on a simulated clock, store faults, drivers and crashes.

`python -m fairwarning.simulation --seeds N` runs it. Checkers look at every promise after every
step; a failing seed is shrunk to a short trace.
"""
