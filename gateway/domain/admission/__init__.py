"""Who may connect now: token buckets, limits per key, watermarks, addresses. Pure: time comes in, outcomes come out."""
