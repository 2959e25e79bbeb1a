"""The version of the library, which is that of the package."""

from ._library import library

__version__: str = library.bertc_version().decode()
