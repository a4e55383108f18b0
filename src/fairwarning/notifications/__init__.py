"""Sends messages about journal entries to targets: webhooks, chat and mail."""
