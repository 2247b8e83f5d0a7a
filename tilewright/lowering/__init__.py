"""Room of the package; see CONTRIBUTING.md for the tour."""
