"""Calls back after a module was imported. Other imports and the loaders stay unchanged."""

import sys

_watched = {}


def watch(name, then):
    loaded = sys.modules.get(name)
    if loaded is not None:
        _call(then, loaded)
        return
    _watched[name] = then
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _call(then, module):
    try:
        then(module)
    except Exception:
        pass  # the program must not see our errors


class _Finder:
    def find_spec(self, name, path=None, target=None):
        then = _watched.get(name)
        if then is None:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                return _followed(spec, then)
        return None

    def invalidate_caches(self):
        pass


def _followed(spec, then):
    execute = getattr(spec.loader, "exec_module", None)
    if execute is None:
        return spec

    def exec_module(module):
        try:
            del spec.loader.exec_module  # restores the method of the class
        except AttributeError:
            pass
        execute(module)
        _watched.pop(spec.name, None)
        _call(then, module)

    try:
        spec.loader.exec_module = exec_module
    except AttributeError:  # a loader that is a class or has slots
        pass
    return spec
