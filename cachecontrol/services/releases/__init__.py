"""What a release asks of the nodes: its candidate loaded before it answers, and gone once it was rolled back."""
