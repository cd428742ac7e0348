"""Bytes to arrays and back, one codec per file.

* `pixels`: whatever a caller calls an image, as an array that can be stored.
* `jpeg`: libjpeg-turbo through simplejpeg.
"""

__all__: list[str] = []
