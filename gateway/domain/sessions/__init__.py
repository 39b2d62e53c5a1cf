"""What happens to one connection or session: position, states, liveness, drain plan."""
