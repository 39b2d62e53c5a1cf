"""What the machine says of this process."""
