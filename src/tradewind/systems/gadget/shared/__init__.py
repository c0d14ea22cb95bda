"""What the schedulers of ring jobs share."""
