"""What the records say: verdicts, tables, pictures, and the page."""
