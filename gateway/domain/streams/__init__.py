"""What happens to text between a producer and a client: dialects, merging."""
