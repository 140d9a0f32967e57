# This folder is on the path of a recorded Python program. This file starts our hook, removes the folder from the path,
# and runs the sitecustomize that it hides. The program continues after any error here.
def _begin():
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if not folder or os.path.abspath(folder) != here]
    try:
        from importlib.util import module_from_spec, spec_from_file_location

        folder = os.path.join(here, "warpsight_hook")
        spec = spec_from_file_location(
            "_warpsight_hook", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        hook = module_from_spec(spec)
        sys.modules["_warpsight_hook"] = hook
        spec.loader.exec_module(hook)
        hook.install()
    except Exception as error:
        sys.modules.pop("_warpsight_hook", None)
        os.putenv("WARPSIGHT_RECORD_HOOKED", f"{os.getpid()} {error}")  # for our library, if CUDA loads it
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401 - the hidden one
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


_begin()
