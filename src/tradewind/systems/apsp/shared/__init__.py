"""What all placements of a parameter server share: the network of one job, reservations, and the policy around a method."""
