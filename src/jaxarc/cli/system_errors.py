"""What the system says of a file, as a line that ends with what to do."""

import errno
from typing import Final

_ADVICE: Final = {
    errno.ENOSPC: "free some space there, or name another place",
    errno.EDQUOT: "free some of the space that you may use there, or name another place",
    errno.EROFS: "it can only be read there; name another place",
    errno.EACCES: "change its permissions, or name another place",
    errno.EPERM: "change who may write there, or name another place",
    errno.ENOENT: "correct the name",
    errno.ENOTDIR: "a file is where a folder should be; name another place",
    errno.EEXIST: "remove what is there, or name another place",
    errno.EISDIR: "name a file",
    errno.EIO: "see to the disk",
}


def say(error: BaseException) -> str:
    """Return the message of an error; one of the system names its file, what is wrong and what to do."""
    if not isinstance(error, OSError) or error.errno is None or error.filename is None:
        return str(error)
    advice = _ADVICE.get(error.errno)
    return f"{error.filename}: {error.strerror}" + (f"; {advice}" if advice else "")
