"""What is made for a resource: one module for each kind of child, each a function from specs to one manifest."""
