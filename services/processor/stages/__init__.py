"""What a text goes through, each stage pure and a sibling of the others: `judge` wires them."""
