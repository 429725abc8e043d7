"""Pictures and sentences that show a town."""
