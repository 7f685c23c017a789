"""What can go wrong before an emulated instance serves: each error says what to do about it."""


class EmulatorError(Exception):
    """The emulator cannot start as it was asked to."""


class BookError(EmulatorError):
    """The answer book cannot be read."""


class FaultError(EmulatorError):
    """A fault was asked for that does not exist or has wrong values."""
