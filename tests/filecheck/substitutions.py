"""What the words in a RUN line stand for; lit.cfg.py and test_filecheck.py both read this table."""

SUBSTITUTIONS = {
    "TW_ROUNDTRIP": "tilewright-opt %s | tilewright-opt | filecheck %s",
    "TW_GENERIC_ROUNDTRIP": "tilewright-opt %s --print-op-generic | tilewright-opt | filecheck %s",
}
