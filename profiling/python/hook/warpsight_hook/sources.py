"""Keeps the source of code that is in no file, such as the cells of a notebook. Whoever compiles it, shows it to linecache."""

import os
import sys

MOST_BYTES, MOST_OF_ONE = 256 * 1024, 50_000
_TYPED = ("<ipython-input", "<python-input", "<stdin", "<console")


class Sources:
    _seen = set()
    _bytes = 0

    def __init__(self, recorder):
        self._recorder = recorder

    def keep(self):
        linecache = sys.modules.get("linecache")
        for path, entry in list(linecache.cache.items()) if linecache else ():
            if path not in Sources._seen:
                Sources._seen.add(path)
                self._keep(path, entry)

    def _keep(self, path, entry):
        if (path.startswith("<") and not path.startswith(_TYPED)) or len(entry) < 4 or os.path.exists(path):
            return
        text = "".join(entry[2])
        size = len(text.encode("utf-8", "replace"))
        if size <= MOST_OF_ONE and Sources._bytes + size <= MOST_BYTES:
            Sources._bytes += size
            self._recorder.fact("source:" + path, text)
