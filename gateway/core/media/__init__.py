"""Audio and video beside the text: taken in (intake), told over the bus, and given out (desk, lane)."""
