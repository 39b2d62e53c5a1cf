"""Who may do what: principals, session patterns, scopes. Pure; others make principals from tokens and tickets."""
