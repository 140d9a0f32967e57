"""Compiles a Triton kernel of one's own. `warpsight kernel` runs it with the Python that has Triton.

    compile_kernel.py SOURCE NAME REQUEST CODE

SOURCE: the text; NAME: the file that it came from; REQUEST: what the op gives, a line each; CODE: the machine code to write.
Prints lines of a key and a value, or "error LINE TEXT".
"""
import inspect
import linecache
import re
import sys
import traceback
import types

ENTRY = "own_kernel"
OLDEST, NEWEST = (3, 3), (3, 6)  # versions whose launches were checked: what a kernel gets behind its own parameters


class Refused(Exception):
    def __init__(self, line, text):
        super().__init__(text)
        self.line = line


def read_request(file):
    """Returns the compute capability, [(operand, type)] and {constant: value}."""
    compute, operands, constants = 0, [], {}
    for line in open(file):
        key, *words = line.split()
        if key == "compute":
            compute = int(words[0])
        elif key == "operand":
            operands.append((words[0], words[1]))
        else:
            constants[words[0]] = float(words[1]) if "." in words[1] or "e" in words[1] else int(words[1])
    return compute, operands, constants


def import_triton():
    try:
        import triton
        import triton.compiler
    except ImportError as problem:
        raise Refused(0, f"{sys.executable} has no Triton ({problem}). Install it, or name another Python in WARPSIGHT_PYTHON.")
    version = tuple(int(part) for part in re.findall(r"\d+", triton.__version__)[:2])
    if not OLDEST <= version <= NEWEST:
        known = " to ".join(".".join(map(str, one)) for one in (OLDEST, NEWEST))
        raise Refused(0, f"Triton {triton.__version__} launches its kernels in a way that is not known here. Install Triton {known}.")
    return triton


def run_source(text, name):
    """Runs the file as a module. Triton reads the text of its functions, which may not be saved yet."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    module = types.ModuleType("own_kernel_file")
    module.__file__ = name
    sys.modules[module.__name__] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def line_of(function):
    return getattr(function, "starting_line_number", 0)


def value_of(module, name, known, parameter):
    """A constant of the op, or what the file defines under this name: a value, or a function of the constants."""
    if name in vars(known):
        return getattr(known, name)
    if hasattr(module, name):
        value = getattr(module, name)
        return value(known) if inspect.isfunction(value) else value
    if parameter.default is not inspect.Parameter.empty:
        return parameter.default
    raise Refused(line_of(getattr(module, ENTRY)), f"{name} is no constant of this op: define {name} in the file.")


def bind(module, operands, constants):
    """Returns the signature and the constants of the kernel, and all constants by name."""
    function = getattr(module, ENTRY, None)
    if not hasattr(function, "arg_names"):
        raise Refused(0, f"There is no function {ENTRY} with @triton.jit.")
    names = list(function.arg_names)
    wanted = ", ".join(name for name, _ in operands)
    parameters = inspect.signature(function.fn).parameters
    constant = [getattr(p, "is_constexpr", False) for p in function.params]
    if len(names) < len(operands) or any(constant[:len(operands)]) or not all(constant[len(operands):]):
        raise Refused(line_of(function), f"The parameters are {wanted}, in this order, and then constants as name: tl.constexpr.")
    known = types.SimpleNamespace(**constants)
    signature, values = {}, {}
    for name, (_, kind) in zip(names, operands):
        signature[name] = kind
    for name in names[len(operands):]:
        signature[name] = "constexpr"
        values[name] = value_of(module, name, known, parameters[name])
        setattr(known, name, values[name])
    return signature, values, known


def blocks_of(module, known):
    blocks = getattr(module, "blocks", None)
    if blocks is None:
        raise Refused(0, "The file does not say how many blocks run: define blocks(c), which gets the constants.")
    return int(blocks(known) if callable(blocks) else blocks)


def build(triton, module, compute, operands, constants):
    from triton.backends.compiler import GPUTarget

    signature, values, known = bind(module, operands, constants)
    options = {name: getattr(module, name) for name in ("num_warps", "num_stages", "maxnreg") if hasattr(module, name)}
    source = triton.compiler.ASTSource(fn=getattr(module, ENTRY), signature=signature, constexprs=values)
    kernel = triton.compile(source, target=GPUTarget("cuda", compute, 32), options=options)
    made = kernel.metadata
    for scratch in ("global_scratch_size", "profile_scratch_size"):
        if getattr(made, scratch, 0):
            raise Refused(0, "The kernel asks for scratch memory of Triton, which it does not get here: write it without descriptors made on the GPU.")
    if getattr(made, "num_ctas", 1) > 1 or getattr(made, "launch_cooperative_grid", False):
        raise Refused(0, "Clusters and cooperative grids are not launched here: leave num_ctas at 1.")
    ptx = kernel.asm["ptx"]
    entry = re.search(r"\.entry\s+" + re.escape(made.name) + r"\s*\(([^)]*)\)", ptx)
    threads = re.search(r"\.reqntid\s+(\d+)", ptx)
    hidden = entry.group(1).count(".param") - len(operands) if entry else -1
    if not 0 <= hidden <= 2:
        raise Refused(0, f"Triton {triton.__version__} made a kernel with parameters that are not known here.")
    facts = {"threads": int(threads.group(1)) if threads else 32 * made.num_warps, "blocks": blocks_of(module, known), "shared": made.shared, "hidden": hidden, "entry": f"0 {made.name}"}
    return kernel.asm["cubin"], facts


def place_of(problem, module_file):
    """The line of a problem in the file; 0: it has none."""
    node, function = getattr(problem, "node", None), None
    if node is not None and getattr(node, "lineno", None):
        function = getattr(sys.modules.get("own_kernel_file"), ENTRY, None)
        source = getattr(problem, "src", None) or ""
        for candidate in vars(sys.modules["own_kernel_file"]).values():
            if getattr(candidate, "src", None) == source and hasattr(candidate, "raw_src"):
                function = candidate
        before = next((i for i, line in enumerate(getattr(function, "raw_src", [])) if line.strip().startswith("def ")), 0)
        return line_of(function) + before + node.lineno - 1
    if isinstance(problem, SyntaxError) and problem.filename == module_file:
        return problem.lineno or 0
    places = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == module_file]
    return places[-1] if places else 0


def first_sentence(problem):
    if isinstance(problem, SyntaxError):
        return problem.msg
    chain = problem
    while chain.__cause__ is not None:
        chain = chain.__cause__
    message = getattr(chain, "error_message", None)
    lines = [line.strip() for line in str(message or chain).splitlines() if line.strip()]
    if message and lines:
        return lines[-1]
    return f"{type(chain).__name__}: {lines[-1] if lines else 'no message'}"


def main(source, name, request, code):
    try:
        compute, operands, constants = read_request(request)
        triton = import_triton()
        cubin, facts = build(triton, run_source(open(source).read(), name), compute, operands, constants)
        with open(code, "wb") as file:
            file.write(cubin)
        for key, value in facts.items():
            print(key, value)
    except Refused as problem:
        print("error", problem.line, problem)
    except Exception as problem:
        print("error", place_of(problem, name), first_sentence(problem))


if __name__ == "__main__":
    main(*sys.argv[1:5])
