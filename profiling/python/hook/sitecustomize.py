# Put on the path of a recorded Python program. Starts our hook, leaves the path as the program expects it, and runs the
# sitecustomize that this file hides. Whatever goes wrong here, the program runs on.
def _begin():
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if not folder or os.path.abspath(folder) != here]
    try:
        from importlib.util import module_from_spec, spec_from_file_location

        folder = os.path.join(here, "warpscope_hook")
        spec = spec_from_file_location(
            "_warpscope_hook", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        hook = module_from_spec(spec)
        sys.modules["_warpscope_hook"] = hook
        spec.loader.exec_module(hook)
        hook.install()
    except Exception:
        sys.modules.pop("_warpscope_hook", None)
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401 - the one that was hidden
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


_begin()
