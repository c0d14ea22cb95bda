"""The loop: wait, quote, decide, audit, apply; the books behind the view; the journal."""
