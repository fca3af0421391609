"""The GitSource controller: fetch a ref, judge its history, accept revisions, hand them to whoever applies."""
