"""Telling people: webhooks, chat and mail, one message for each transition they want to hear of."""
