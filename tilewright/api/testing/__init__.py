"""Property tests of passes and lowerings: random programs, run before and after. Public as `tilewright.testing`."""
