"""C functions, by name and by address, for compiled code."""

from pulse.jit.language.declared import UNREGISTERED, CFunction, CSignature, CType, PythonFunction, refuse


def c_signature(returns: CType | None, *takes: CType) -> CSignature:
    """Return the signature of a C function. An ``address`` is passed as an int from ``address_of``."""
    return CSignature(returns, takes)


def c_function(name: str, signature: CSignature) -> PythonFunction:
    """Return the C or LLVM function of that name; it is looked up in this process when the code is linked.

    Addresses may be passed as int64: ``address_of(stack_i64(2))``.
    """
    return _declare(signature, name)


def c_function_at(signature: CSignature) -> PythonFunction:
    """Return a function of an address and the arguments of the C function there."""
    return _declare(signature, None)


def _declare(signature: CSignature, name: str | None) -> PythonFunction:
    def call(*arguments: object) -> object:
        refuse()

    UNREGISTERED.append(CFunction(call, signature, name))
    return call


call_address = c_function_at(c_signature(None, "i64"))
"""Call the C function at an address: ``void(int64)``."""
