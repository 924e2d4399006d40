"""Ways for the bytes of an upload to come, besides one PUT for each file: in parts, or through this process."""
