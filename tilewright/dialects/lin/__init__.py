"""Structured ops on symbolic tensors: `lin.generic` and the named ops that decompose to it."""
