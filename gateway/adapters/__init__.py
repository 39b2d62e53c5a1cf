"""Everything that talks to the outside; one package per technology, none imports another."""
