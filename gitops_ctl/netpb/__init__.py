"""Generated messages and services of the machines' protocols.  Only workers import them; `python -m tools.generate_stubs` writes them."""
