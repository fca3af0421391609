"""Logs and metrics.  Stands outside the rooms: every room may write here, and nothing here knows a room above core."""
