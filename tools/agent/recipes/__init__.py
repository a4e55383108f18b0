"""Runs each recipe of docs/agent-recipes.md beside the real program that it drains."""
