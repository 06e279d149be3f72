"""C functions by name and by address, as compiled code calls them."""

from pulse.jit.declared import UNREGISTERED, CFunction, CSignature, CType, Function, refuse


def c_signature(gives: CType | None, *takes: CType) -> CSignature:
    """What a C function gives and takes. An ``address`` is one that ``address_of`` makes an int of."""
    return CSignature(gives, takes)


def c_function(name: str, signature: CSignature) -> Function:
    """The C function, or LLVM's, of that name; it is looked for in this process when the code is linked.

    Where it takes an address, an int64 does as well: ``address_of(stack_i64(2))``.
    """
    return _declare(signature, name)


def c_function_at(signature: CSignature) -> Function:
    """A function of an address and of what the C function takes that is there."""
    return _declare(signature, None)


def _declare(signature: CSignature, name: str | None) -> Function:
    def call(*arguments: object) -> object:
        refuse()

    UNREGISTERED.append(CFunction(call, signature, name))
    return call


call_at = c_function_at(c_signature(None, "i64"))
"""Call the C function at an address: ``void(int64)``."""
