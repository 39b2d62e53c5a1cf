"""Who is preferred for what among the live gateways. Preference only: nothing is wrong when two disagree."""
