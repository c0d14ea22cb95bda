"""What the policies, the offline plan and the bound share."""
