"""Tests of the live check."""
