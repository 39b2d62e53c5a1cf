"""Who may do what: principals, session patterns, scopes. Pure; tokens and tickets are made into principals elsewhere."""
