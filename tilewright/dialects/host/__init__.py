"""`host`: the launch plan. Import ops from the modules of this folder."""
