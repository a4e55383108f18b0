"""Simulates whole worlds from a seed: the real engine with simulated time, faults and crashes.

`python -m fairwarning.simulation --seeds N` runs it. Checkers look at every promise after every
step; a failing seed is shrunk to a short trace.
"""
