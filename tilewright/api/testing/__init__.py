"""Property tests of passes and lowerings: random programs, executed before and after. Public as `tilewright.testing`."""
