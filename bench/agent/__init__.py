"""What one node agent takes and does with ten thousand versions."""
