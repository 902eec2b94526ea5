"""What the bot listens to."""
