"""`simt`: what each thread does. Import ops and types from the modules of this folder."""
