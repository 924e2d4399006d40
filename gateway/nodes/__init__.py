"""What this process knows of the nodes: its requests there, how their engines do, and whether they answer."""
