"""The audit log read: checked, listed, exported."""
