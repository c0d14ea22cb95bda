"""Tests of policies in processes of their own."""
