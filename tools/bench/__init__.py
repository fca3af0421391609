"""Side-by-side measurements of the product (`make bench`): each figure stands beside a named reference of the same run."""
