"""Telling receivers of what happened: the audit log is what is sent, and says what is still to be sent.

``endpoints`` are the receivers. ``outbox`` turns records into deliveries, ``deliveries`` gives out what is due and
keeps what came of it. Nothing here opens a connection: ``registry.webhooks.sending`` does, outside of any transaction.
"""
