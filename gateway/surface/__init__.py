"""What clients may ask for: paths, fields, headers, and the form in which an engine's refusals reach them."""
