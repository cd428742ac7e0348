"""Bytes to arrays and back, one codec per file.

* `pixels`: whatever a caller calls an image, as an array that can be stored.
* `frame_header`: where a JPEG says its size and components.
* `first_frame`: what the first frame of a clip tells of those like it.
* `frame_sizes`: which sizes the frames of an item have.
* `output`: memory that it decodes into.
* `jpeg`: libjpeg-turbo through simplejpeg.
* `whole_jpeg`: a JPEG of another program, such that it reads it.
* `encoding`: frames encoded in their order, by several threads.
* `options`: what to make of each frame: its size, a part of it, its colours.
* `decode`: frames like a first one, into memory that is there.
* `recent`: the decoders that were used last.
* `scratch`: memory for a frame that is looked at once.
"""

__all__: list[str] = []
