"""What endpoints of pods mean for gateways, what a pod costs to delete, how soon to ask an API server again."""
