"""Backends: how a planned entry runs. One file each; `base` has what they share, `select` says which one it is."""
