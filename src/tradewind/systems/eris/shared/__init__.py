"""Code that several policies of Eris share."""
