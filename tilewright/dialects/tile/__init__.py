"""`tile`: a schedule, as a program. Import ops and types from the modules of this folder."""
